//! Members of the zoo's histories as p2panda has them: the rules of its crate p2panda-auth, version 0.7.0.
//!
//! Takes a line of JSON for each history (`python -m tests.proof.zoo --json`), and prints one: title, members with their
//! permissions, numbers of refused steps, and in how many of 200 other orders of arrival other members came out. Its other
//! crate is serde_json. Permissions: read, write (of which Ravel's `manage` is one: it admits nobody), manage for admin and
//! owner. A grant to a member is a promotion.

use std::collections::BTreeMap;
use std::io::{stdin, BufRead};

use p2panda_auth::group::resolver::StrongRemove;
use p2panda_auth::group::{GroupAction, GroupCrdt, GroupCrdtState, GroupMember};
use p2panda_auth::traits::{IdentityHandle, Operation, OperationId};
use p2panda_auth::Access;
use serde_json::{json, Value};

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
struct User(usize);
impl IdentityHandle for User {}
impl std::fmt::Display for User {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{}", self.0)
    }
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
struct Number(usize);
impl OperationId for Number {}
impl std::fmt::Display for Number {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{}", self.0)
    }
}

#[derive(Clone, Debug)]
struct Act {
    id: Number,
    author: User,
    dependencies: Vec<Number>,
    action: GroupAction<User>,
}

impl Operation<User, Number> for Act {
    fn id(&self) -> Number {
        self.id
    }
    fn author(&self) -> User {
        self.author
    }
    fn dependencies(&self) -> Vec<Number> {
        self.dependencies.clone()
    }
    fn group_id(&self) -> User {
        GROUP
    }
    fn action(&self) -> GroupAction<User> {
        self.action.clone()
    }
}

const GROUP: User = User(usize::MAX);
const ORDERS: u64 = 200;
type State = GroupCrdtState<User, Number, Act, ()>;
type Group = GroupCrdt<User, Number, Act, (), StrongRemove<User, Number, Act, ()>>;

fn access(level: &str) -> Access {
    match level {
        "read" => Access::read(),
        "write" | "manage" => Access::write(),
        _ => Access::manage(),
    }
}

/// Return members with their permissions after operations, in the order given; None if one is refused.
fn members(acts: &[&Act]) -> Option<BTreeMap<User, String>> {
    let mut state: State = Group::init();
    for act in acts {
        state = Group::process(state, act).ok()?;
    }
    Some(
        state
            .members(GROUP)
            .into_iter()
            .map(|(user, access)| (user, access.to_string()))
            .collect(),
    )
}

/// Return acts and all before them, in the order in which they were made.
fn past<'a>(acts: &'a [Act], of: &[Number]) -> Vec<&'a Act> {
    let mut wanted: Vec<usize> = of.iter().map(|number| number.0).collect();
    let mut next = 0;
    while next < wanted.len() {
        let act = acts.iter().find(|act| act.id.0 == wanted[next]).expect("made before");
        wanted.extend(act.dependencies.iter().map(|number| number.0));
        next += 1;
    }
    acts.iter().filter(|act| wanted.contains(&act.id.0)).collect()
}

/// Return an order in which each act follows its dependencies, drawn from a seed.
fn other_order(acts: &[Act], mut seed: u64) -> Vec<&Act> {
    let mut left: Vec<&Act> = acts.iter().collect();
    let mut order: Vec<&Act> = Vec::new();
    while !left.is_empty() {
        let ready: Vec<usize> = (0..left.len())
            .filter(|at| {
                left[*at]
                    .dependencies
                    .iter()
                    .all(|one| order.iter().any(|act| act.id == *one))
            })
            .collect();
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        order.push(left.remove(ready[(seed >> 33) as usize % ready.len()]));
    }
    order
}

fn answer(history: &Value) -> Value {
    let names: Vec<&str> = history["names"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one.as_str().unwrap())
        .collect();
    let user = |name: &Value| User(names.iter().position(|one| Some(*one) == name.as_str()).unwrap());
    let ann = GroupMember::Individual(user(&json!("ann")));
    let founding = GroupAction::Create {
        initial_members: vec![(ann, Access::manage())],
    };
    let mut acts = vec![Act {
        id: Number(0),
        author: ann.id(),
        dependencies: vec![],
        action: founding,
    }];
    let mut stands: Vec<Vec<Number>> = vec![vec![Number(0)]]; // what a later act follows, by the number of the step
    let mut refused = Vec::new();
    for (number, step) in (1..).zip(history["steps"].as_array().unwrap()) {
        let mut dependencies: Vec<Number> = step["acks"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|ack| stands[ack.as_u64().unwrap() as usize].clone())
            .collect();
        dependencies.sort();
        dependencies.dedup();
        let before = past(&acts, &dependencies);
        let now = members(&before).unwrap();
        let (named, level) = (user(&step["user"]), step["level"].as_str().unwrap());
        let member = GroupMember::Individual(named);
        let action = match (step["kind"].as_str().unwrap(), now.contains_key(&named)) {
            ("grant", false) => GroupAction::Add {
                member,
                access: access(level),
            },
            ("grant", true) => GroupAction::Promote {
                member,
                access: access(level),
            },
            _ if level.is_empty() => GroupAction::Remove { member },
            _ => GroupAction::Demote {
                member,
                access: access(level),
            },
        };
        let act = Act {
            id: Number(number),
            author: user(&step["author"]),
            dependencies: dependencies.clone(),
            action,
        };
        let mut with = before.clone();
        with.push(&act);
        if members(&with).is_some() {
            acts.push(act);
            stands.push(vec![Number(number)]);
        } else {
            refused.push(number);
            stands.push(dependencies);
        }
    }
    let made = members(&acts.iter().collect::<Vec<_>>()).expect("accepted");
    let differ = |seed: &u64| members(&other_order(&acts, *seed)).as_ref() != Some(&made);
    let other_orders = (0..ORDERS).filter(differ).count();
    let named: BTreeMap<&str, &String> = made.iter().map(|(user, access)| (names[user.0], access)).collect();
    json!({"title": history["title"], "members": named, "refused": refused, "other_orders": other_orders})
}

fn main() {
    for line in stdin().lock().lines() {
        println!("{}", answer(&serde_json::from_str(&line.unwrap()).unwrap()));
    }
}
