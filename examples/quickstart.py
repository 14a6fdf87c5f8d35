"""Train FedEASE on the embedded books, look at honest numbers, recommend books to one reader and to a new person."""

import ownview as ov

data = ov.load("goodbooks")
print(f"{data.num_users} readers, {data.num_items} books, {len(data)} ratings")

run = ov.run(ov.FedEASE(), data)
print(f"protocol {run.result['protocol']}, seed {run.result['seed']}, round {run.result['chosen_round']} of 1")
print(f"HR@10 {run.metrics['HR@10']:.4f}, NDCG@10 {run.metrics['NDCG@10']:.4f}, all books ranked")

baseline = ov.run(ov.Popularity(), data)
print(f"popularity: HR@10 {baseline.metrics['HR@10']:.4f}")

reader = data.users[0]
for place, book in enumerate(run.recommend(reader, k=5), start=1):
    print(f"{place}. {book.title}")

person = run.newcomer([data.title(0), data.title(1)])
print(f"after {person.history[-1].title}: {run.recommend(person, k=1)[0].title}")
