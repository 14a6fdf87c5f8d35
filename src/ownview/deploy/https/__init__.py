"""Messages by HTTPS: the server answers requests on one port, places poll, and nothing listens at a place.

    limits       what a server lets others take: connections, bytes, seconds, lines of its log
    contexts     TLS of both ends
    door         accepts connections, and lets those in that show a certificate in time
    connection   HTTP/1.1 on a connection that was let in, one for every certificate
    mailboxes    messages that wait for places, and answers that wait for the coordinator
    app          the ASGI application: who asks, for what, and whether they may
    server       the coordinator's end of the transport
    polling      a place's end
    joining      how a place gets its certificate
    bounded_log  lines that strangers cause, so many a minute and no more

Requests, all with a client's certificate of the deployment's authority; without one the handshake fails:

    GET  /v1/next       200 and a message (its number in `ownview-message`, the longest answer in `ownview-longest`);
                        204 where there was none for a while: ask again
    POST /v1/answer     the answer to the message of that number; 204. 409 if it was not asked for
    POST /v1/enrol      with an invitation's certificate: a certificate request; 200 and the certificate
    403                 the key is unknown or was revoked; the body says so in one line
"""
