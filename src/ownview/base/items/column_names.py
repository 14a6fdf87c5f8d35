"""Names of columns as shops, libraries and services write them: English, German, French, Spanish, Italian, Portuguese.

Names are compared without case, accents and punctuation. Where a file has several of them the earlier wins, so ids
stand before what may be a name, and sessions, which are users only where no other column is, stand last.
"""

from __future__ import annotations

import re
import unicodedata

_NUMBERED = re.compile(r"^(n[°º]|№)\s*(de |d['’])?")
RECBOLE_TYPE = re.compile(r":(token|float|token_seq|float_seq)$")

ALIASES: dict[str, tuple[str, ...]] = {
    "user": (
        *("user", "userid", "uid", "reviewerid", "customerid", "accountid", "member", "memberid", "customer"),
        *("customernumber", "customerno", "custid", "clientid", "client", "visitorid", "buyerid", "shopperid"),
        *("householdid", "householdkey", "subscriberid", "listenerid", "profileid", "patronid", "borrowerid"),
        *("readerid", "personid", "customeremail", "useremail", "email", "username", "login"),
        *("buyeremail", "billingemail", "emailbilling"),
        *("customeruserid", "patronnumber", "borrowernumber", "cardnumber", "patron"),
        *("borrower", "person"),
        *("kundennummer", "kundennr", "kundenid", "kunde", "nutzerid", "nutzer", "benutzerid", "benutzer"),
        *("benutzernummer", "lesernummer", "lesernr", "leserid", "leser", "mitgliedsnummer", "mitgliedsnr", "mitglied"),
        *("kdnr", "ausweisnummer", "ausweisnr", "leserausweis"),
        *("idclient", "numeroclient", "numclient", "codeclient", "idutilisateur", "utilisateur", "acheteur"),
        *("idcliente", "clienteid", "numerocliente", "codigocliente", "cliente", "idusuario", "usuario"),
        *("codicecliente", "idutente", "utenteid", "utente", "acquirente"),
        *("codigodocliente", "iddocliente", "utilizador", "idutilizador", "comprador"),
        *("visitor", "buyer", "reviewer", "sessionid", "session", "usersession", "sitzung", "sesion", "sessione"),
    ),
    "item": (
        *("item", "itemid", "iid", "movie", "movieid", "film", "filmid", "book", "bookid", "isbn"),
        *("artist", "artistid", "trackid", "track", "songid", "song", "asin", "parentasin", "productid"),
        *("stockcode", "sku", "productsku", "lineitemsku", "variantsku", "productcode", "itemcode", "itemnumber"),
        *("itemno", "articlenumber", "articleno", "ean", "upc", "gtin", "product", "businessid", "articleid"),
        *("newsid", "gameid", "appid", "videoid", "recipeid", "courseid", "showid", "animeid", "podcastid"),
        *("listingid", "venueid", "poiid"),
        *("artikelnummer", "artikelnr", "artikelid", "produktnummer", "produktid", "artikel", "produkt", "buch"),
        *("mediennummer", "mediennr", "medienid", "biblionumber", "itembarcode", "barcode", "spotifytrackuri"),
        *("idarticle", "codearticle", "refarticle", "idproduit", "codeproduit", "refproduit", "article", "produit"),
        *("idarticulo", "codigoarticulo", "idproducto", "productoid", "codigoproducto", "articulo", "producto"),
        *("codicearticolo", "idarticolo", "codiceprodotto", "idprodotto", "articolo", "prodotto"),
        *("codigoproduto", "codigodoproduto", "idproduto", "artigo", "produto"),
        *("livre", "libro", "livro", "pelicula", "filme", "chanson", "cancion", "canzone", "musica", "lied"),
    ),
    "rating": (
        *("rating", "stars", "score", "overall", "weight", "playcount", "plays", "count", "bookrating", "userrating"),
        *("starrating", "reviewrating", "reviewscore", "bewertung", "sterne", "evaluation", "valoracion"),
        *("puntuacion", "calificacion", "voto", "valutazione", "punteggio", "avaliacao", "nota"),
    ),
    "timestamp": (
        *("timestamp", "ts", "time", "unixreviewtime", "datetime", "date", "createdat", "invoicedate", "orderdate"),
        *("orderedat", "purchasedate", "purchasedat", "purchasetime", "ordertime", "transactiondate"),
        *("transactiontime", "eventtime", "eventtimestamp", "eventdate", "created", "createdon", "ratedat"),
        *("watchedat", "playedat", "listenedat", "readat", "dateread", "datewatched", "checkoutdate"),
        *("checkoutdatetime", "loandate", "issuedate", "ausleihdatum", "leihdatum", "entleihdatum", "verkaufsdatum"),
        *("bestelldatum", "kaufdatum", "rechnungsdatum", "datum", "zeitstempel", "zeitpunkt"),
        *("datecommande", "datedecommande", "dateachat", "datedachat", "dateheure", "horodatage"),
        *("fechapedido", "fechadepedido", "fechacompra", "fechadecompra", "fechahora", "fecha"),
        *("dataordine", "datadellordine", "dataacquisto", "dataora"),
        *("datapedido", "datadopedido", "datacompra", "datadacompra", "datahora"),
    ),
    "title": (
        *("title", "name", "itemname", "itemtitle", "movietitle", "originaltitle", "productname", "producttitle"),
        *("booktitle", "moviename", "filmtitle", "songtitle", "tracktitle", "trackname", "songname", "gamename"),
        *("lineitemname", "mastermetadatatrackname", "description", "itemdescription", "productdescription"),
        *("titel", "artikelbezeichnung", "produktbezeichnung", "bezeichnung", "artikelname", "produktname"),
        *("titre", "designation", "libelle", "nomproduit", "nomduproduit", "nomarticle"),
        *("titulo", "nombreproducto", "nombredelproducto", "nombrearticulo", "descripcion"),
        *("titolo", "nomeprodotto", "nomearticolo", "descrizione"),
        *("nomeproduto", "nomedoproduto", "descricao", "beschreibung"),
    ),
    "creator": (
        *("creator", "creators", "author", "authors", "director", "directors", "artistname", "verfasser", "autor"),
        *("auteur", "regisseur"),
    ),
    "url": ("url", "link", "itemurl", "producturl", "productlink", "website", "lien", "enlace"),
    "image": (
        *("image", "imageurl", "imagelink", "picture", "pictureurl", "thumbnail", "thumbnailurl", "cover", "coverurl"),
        *("bild", "imagem", "imagen", "immagine"),
    ),
    "quantity": (
        *("quantity", "qty", "orderqty", "quantityordered", "orderquantity", "lineitemquantity", "units"),
        *("qtyordered", "quantityrefund", "productqty", "productquantity", "itemqty", "itemquantity"),
        *("menge", "anzahl", "stuck", "stueck", "quantite", "qte", "cantidad", "unidades", "quantita", "qta"),
        *("quantidade", "qtd", "qtde"),
    ),
    "order": (
        *("invoiceno", "invoice", "invoicenumber", "invoiceid", "orderid", "ordernumber", "orderno", "transactionid"),
        *("rechnungsnummer", "rechnungsnr", "bestellnummer", "numerofacture", "facture", "numerocommande"),
        *("numeropedido", "pedido", "factura", "numeroordine", "ordine", "fattura", "fatura"),
        *("numerodecommande", "numerodefacture", "numerodepedido", "numerodopedido", "numerodelordine"),
    ),
    "event": (
        *("eventtype", "event", "eventname", "action", "interactiontype", "behavior", "behaviortype", "orderstatus"),
        *("financialstatus", "paymentstatus"),
        *("ereignis", "evenement", "evento", "aktion", "azione", "acao", "bestellstatus"),
        *("vorgang", "vorgangsart", "buchungsart", "transactiontype"),
    ),
    "cancelled": (
        *("cancelledat", "canceledat", "cancelledon", "canceledon", "cancelleddate", "canceleddate", "storniertam"),
        *("stornodatum", "annulele", "dateannulation", "datedannulation", "fechacancelacion", "fechadecancelacion"),
        *("dataannullamento", "datadiannullamento", "datacancelamento", "datadecancelamento"),
    ),
}

SESSIONS = frozenset({"sessionid", "session", "usersession", "sitzung", "sesion", "sessione"})
"""Of the names of a user: those that name a visit rather than a person."""

TIME_WORDS = ("date", "time", "datum", "zeit", "fecha", "hora", "heure", "data", "ora", "day", "tag", "jour", "dia")
"""Parts of a column's name that may mean a time; the values decide."""

LIKELY_WORDS = {
    "user": (
        *("user", "nutzer", "kund", "custom", "client", "member", "mitglied", "reader", "leser", "person", "mail"),
        *("klant", "klient", "profil", "account", "konto", "patron", "card", "karte", "carte", "tarjeta", "tessera"),
    ),
    "item": ("item", "produ", "arti", "sku", "book", "buch", "medi", "film", "movie", "track", "song", "game", "code"),
}
"""Parts of a column's name that may mean a person or a thing; enough for a proposal, not for taking it."""


def bare_name(field: str) -> str:
    """A column name without RecBole's type, case, accents and punctuation: 'user_id:token' is 'userid'.

    A # at its end is a number: 'Item #' is 'itemnumber'; so is N° or Nº in front: 'N° de client' is 'numeroclient'.
    """
    text = _NUMBERED.sub("numero", RECBOLE_TYPE.sub("", field.strip()).casefold())
    text = re.sub("#$", "number", unicodedata.normalize("NFKD", text))
    return "".join(one for one in text if one.isalnum())
