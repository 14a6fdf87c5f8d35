"""Train PFedRec on the embedded books, look at honest numbers, recommend books to one reader."""

import sys

import ownview as ov

rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 50
data = ov.load("goodbooks")
print(f"{data.num_users} readers, {data.num_items} books, {len(data)} ratings")

run = ov.run(ov.PFedRec(), data, rounds=rounds)
print(f"protocol {run.result['protocol']}, seed {run.result['seed']}, round {run.result['chosen_round']} of {rounds}")
print(f"HR@10 {run.metrics['HR@10']:.4f}, NDCG@10 {run.metrics['NDCG@10']:.4f}, all books ranked")

baseline = ov.run(ov.Popularity(), data)
print(f"popularity: HR@10 {baseline.metrics['HR@10']:.4f}")

reader = data.users[0]
for place, book in enumerate(run.recommend(reader, k=5), start=1):
    print(f"{place}. {book.title}")
