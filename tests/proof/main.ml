(* Reads histories, prints verdicts; runs the checks of Check.v to a bound. *)
open Model

let words line = List.filter (fun word -> word <> "") (String.split_on_char ' ' line)

let deed_of kind numbers =
  match kind, numbers with
  | "found", founders -> Found founders
  | "grant", [user; level] -> Grant (user, level)
  | "remove", [user; level] -> Remove (user, level)
  | "invite", [level; uses; late] -> Invite (level, uses, late = 1)
  | "join", [invitation] -> Join invitation
  | "revoke", [invitation] -> Revoke invitation
  | "quorum", threshold :: covers :: signers -> Quorum (signers, threshold, covers = 1)
  | "propose", [user; level] -> Propose (user, level)
  | "approve", [proposal] -> Approve proposal
  | "act", [level] -> Act level
  | "withdraw", [offer] -> Withdraw offer
  | _ -> failwith ("unknown deed " ^ kind)

let step_of text =
  match String.split_on_char '<' text with
  | [said; acks] -> (
      match words said with
      | author :: kind :: rest ->
          ((int_of_string author, deed_of kind (List.map int_of_string rest)), List.map int_of_string (words acks))
      | _ -> failwith text)
  | _ -> failwith text

let numbers list = String.concat " " (List.map string_of_int list)

let text_of_deed = function
  | Found founders -> "found " ^ numbers founders
  | Grant (user, level) -> Printf.sprintf "grant %d %d" user level
  | Remove (user, level) -> Printf.sprintf "remove %d %d" user level
  | Invite (level, uses, late) -> Printf.sprintf "invite %d %d %d" level uses (Bool.to_int late)
  | Join invitation -> Printf.sprintf "join %d" invitation
  | Revoke invitation -> Printf.sprintf "revoke %d" invitation
  | Quorum (signers, threshold, covers) ->
      Printf.sprintf "quorum %d %d %s" threshold (Bool.to_int covers) (numbers signers)
  | Propose (user, level) -> Printf.sprintf "propose %d %d" user level
  | Approve proposal -> Printf.sprintf "approve %d" proposal
  | Act level -> Printf.sprintf "act %d" level
  | Withdraw offer -> Printf.sprintf "withdraw %d" offer
  | Start (boxes, writers, given) ->
      Printf.sprintf "start %s / %s / %s" (numbers boxes) (numbers writers) (numbers given)
  | Open given -> "open " ^ numbers given
  | Hand (epoch, users, writers) -> Printf.sprintf "hand %d %s / %s" epoch (numbers users) (numbers writers)

let heads past = List.filter (fun one -> not (List.exists (fun other -> precedes one other) past)) past

let text_of_entry one =
  Printf.sprintf "%d %s < %s" (author one) (text_of_deed (does one)) (numbers (List.map num (heads (past one))))

let text_of whole = String.concat " ; " (List.map text_of_entry whole)

(* Steps kept (their numbers, or -), members, and which of those kept count. *)
let judge whole kept =
  let kept = List.map (function Some number -> string_of_int number | None -> "-") kept in
  let members = List.map (fun (user, level) -> Printf.sprintf "%d:%d" user level) (members whole (List.init 8 Fun.id)) in
  let counting = List.map (fun one -> if counts whole one then "1" else "0") whole in
  Printf.printf "%s | %s | %s\n" (String.concat " " kept) (String.concat " " members) (String.concat " " counting)

let tell_all () =
  try
    while true do
      let steps = List.map step_of (String.split_on_char ';' (input_line stdin)) in
      let whole, kept = tell steps in
      judge whole kept
    done
  with End_of_file -> ()

(* Every history of up to k operations after the starts, one of `every`, with its verdicts. *)
let print_traces offer starts k every =
  let seen = ref 0 in
  let print whole =
    incr seen;
    if !seen mod every = 0 then begin
      print_string (text_of whole ^ " | ");
      judge whole (List.map (fun one -> Some (num one)) whole)
    end;
    true
  in
  ignore (search_all k offer print starts)

(* As above, of honest nodes and a hostile one, before and after all have met: the clean epochs, the one in use, and which
   each user surely holds. *)
let print_epochs k every =
  let seen = ref 0 in
  let say whole =
    let text = String.concat " ; " (List.map (fun one -> Printf.sprintf "%s @ %d" (text_of_entry one) (epoch one)) whole) in
    let used = match in_use whole with Some one -> string_of_int (num one) | None -> "-" in
    let held = List.map (fun user -> numbers (List.sort compare (surely_held whole user))) users in
    Printf.printf "%s | %s | %s | %s\n" text (numbers (List.map num (clean_tips whole))) used (String.concat "," held)
  in
  let print whole =
    incr seen;
    if !seen mod every = 0 then (say whole; say (tend 12 whole));
    true
  in
  List.iter (fun whole -> say whole; say (tend 12 whole)) epoch_cases;
  ignore (List.fold_left (fun found start -> explore true k print start found) (0, None) epoch_starts)

let report name (count, bad) =
  match bad with
  | None -> Printf.printf "ok %s: %d\n" name count
  | Some whole ->
      Printf.printf "WRONG %s: %s\n" name (text_of whole);
      exit 1

let report_all name (count, is_right) =
  Printf.printf "%s %s: %d\n" (if is_right then "ok" else "WRONG") name count;
  if not is_right then exit 1

let () =
  match Array.to_list Sys.argv |> List.tl with
  | ["tell"] -> tell_all ()
  | ["traces"; "small"; k; every] ->
      print_traces admins_and_exclusions starts (int_of_string k) (int_of_string every)
  | ["traces"; "large"; k; every] ->
      print_traces all_kinds (starts @ starts_with_quorum) (int_of_string k) (int_of_string every)
  | ["epoch-traces"; k; every] -> print_epochs (int_of_string k) (int_of_string every)
  | ["safe"; k; attack] ->
      report "safe" (search_all (int_of_string k) admins_and_exclusions (rights_are_safe (int_of_string attack)) starts)
  | ["safe-large"; k; attack] ->
      report "safe-large" (search_all (int_of_string k) all_kinds (rights_are_safe (int_of_string attack)) starts)
  | ["safe-quorum"; k; attack] ->
      report "safe-quorum"
        (search_all (int_of_string k) all_kinds (rights_are_safe (int_of_string attack)) starts_with_quorum)
  | ["undo"; k] -> report "undo" (search_all (int_of_string k) admins_and_exclusions only_seniors_undo starts)
  | ["circles"; n] -> report_all "circles" (circles (int_of_string n))
  | ["epochs"; k] -> report "epochs" (explore_all false (int_of_string k))
  | ["hostile"; k] -> report "hostile" (explore_all true (int_of_string k))
  | ["eager"; n] -> report_all "eager" (eager_check (int_of_string n))
  | _ -> prerr_endline "model tell | traces | safe | undo | circles | epochs | eager"; exit 2
