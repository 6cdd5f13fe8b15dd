(** The theorems, and what each rests on: Coq prints "Closed under the global context" where it is nothing. *)

From Proof Require Import Rules Unique Order Connected.

Print Assumptions counts_is_a_function_of_the_set.
Print Assumptions members_are_a_function_of_the_set.
Print Assumptions admitted_sets_have_one_answer.
Print Assumptions timeline_is_a_function_of_the_set.
Print Assumptions causes_come_first.
Print Assumptions order_of_arrival_decides_nothing.
Print Assumptions every_connected_member_accepts.
Print Assumptions verdicts_agree.
Print Assumptions only_who_may_hold_holds.
Print Assumptions eager_ends_in_canonical_order.
Print Assumptions published_moves_are_steps.
Print Assumptions net_edits_are_least.
