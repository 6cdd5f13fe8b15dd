"""Machine-checked model of membership, epochs and the canonical order, and its use as an oracle for the product.

`make proof` checks all of it. Coq 8.16 (Debian's package `coq`) checks the proofs and extracts the executable model to
OCaml, which searches all small histories. The model is written from docs/specification/membership-rules.md and
docs/understanding/order.md; it shares nothing with the product or the other models of the tests.

- `Rules.v`, `Epochs.v`: the rules, as functions of a set of operations. `Eager.v`: ScuttleSort as published.
- `Unique.v`, `Order.v`, `Connected.v`: proofs. `Audit.v`: what each theorem rests on.
- `Check.v`: properties, and the search through all small histories. `main.ml`: its command line.
- `mutants.txt`: one rule after another left out or changed; a check must fail for each (`make proof MUTANTS=1`).

Why Coq: one definition serves the proofs for all sizes, the exhaustive search and the traces. TLA+ with TLC, Alloy and
Apalache are in none of the registries that this project installs from, and they check bounded sizes alone. Spin and Z3 are
there, but cannot prove by induction over pasts, which theorems (a), (b), (e) and (f) need.
"""
