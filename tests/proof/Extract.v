(** The executable part as OCaml (model.ml), for bounds that Coq's own machine takes too long for. Numbers become int. *)

From Coq Require Import Extraction ExtrOcamlBasic ExtrOcamlNatInt List Arith.
From Proof Require Import Rules Epochs Eager Check.
Extraction Language OCaml.
Set Warnings "-extraction-opaque-accessed,-extraction-reserved-identifier".
Extract Inlined Constant Nat.modulo => "(fun a b -> a mod b)".
Extraction "model.ml" tell search_all explore_all circles eager_check members counts users
  admins_and_exclusions all_kinds starts starts_with_quorum rights_are_safe only_seniors_undo founders_stay
  author does past num precedes clean_tips in_use surely_held tend epoch explore epoch_starts epoch_cases
  stays_out strong_removal same_backwards forks_merge extensions told.
