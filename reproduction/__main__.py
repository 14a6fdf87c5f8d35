"""`python -m reproduction`, from the root of a clone of the repository."""

if __name__ == "__main__":
    from reproduction.commands.main import entry

    entry()
