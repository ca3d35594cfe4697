//! Lost responses and conflicts, on the model.
//!
//! Every write is made in a table where the first responses to writes are lost, and must end as in a table where none
//! is.

use futures::future::BoxFuture;
use keys::{item::Item, key::Key, number::Decimal};
use queries::{
    Queries,
    write_error::WriteError,
    writes::{
        TRIES_MAX,
        folders::NewFile,
        orders::OrderStatus,
        posts::{NewPost, PostEdit},
        products::{ProductEdit, ReviewEdit},
        readings::NewReading,
        users::ProfileEdit,
    },
};
use std::sync::Arc;
use store::faulty::{Fault, Faulty, Side};

use crate::writes::{
    bed::{START_MS, runtime, shown},
    orders::line,
    products::product,
    races::{Chance, Faults, Model},
    users::user,
};

type Interface = Queries<Arc<Faulty<Chance>>>;
type Step = for<'a> fn(&'a Interface) -> BoxFuture<'a, Result<String, WriteError>>;

/// A step of the story: a write and its result.
macro_rules! steps {
    ($(|$queries:ident| $write:expr;)*) => {
        [$((|$queries| Box::pin(async move { Ok(format!("{:?}", $write.await?)) })) as Step),*]
    };
}

fn post_key() -> Key {
    Key::new("USER#ada", "POST#2024-01-15T10:30:00.000Z#p1")
}

fn order_key() -> Key {
    Key::new("USER#ada", "ORDER#2024-01-15T10:30:00.000Z#o1")
}

fn file_key(folder: &str) -> Key {
    Key::new(format!("FOLDER#{folder}"), "FILE#2024-01-15T10:30:00.000Z#x")
}

/// A story with every kind of write, each on the items of the earlier ones.
fn story() -> Vec<Step> {
    let people = steps! {
        |queries| queries.create_user("ada", user("Ada", "ada@example.org"));
        |queries| queries.update_profile("ada", 1, ProfileEdit { name: Some("A".to_owned()), ..Default::default() });
        |queries| queries.update_profile("ada", 2, ProfileEdit { email: Some("new@b.c".to_owned()), ..Default::default() });
        |queries| queries.follow("ada", "bob");
        |queries| queries.unfollow("ada", "bob");
        |queries| queries.like("ada", "p1");
        |queries| queries.unlike("ada", "p1");
        |queries| queries.record_view("ada", "p1");
        |queries| queries.create_post("ada", "p1", NewPost { title: "T".to_owned(), content: None, is_published: false });
        |queries| queries.publish_post(&post_key());
        |queries| queries.edit_post(&post_key(), PostEdit { title: Some("U".to_owned()), ..Default::default() });
        |queries| queries.delete_post(&post_key());
        |queries| queries.comment("ada", "p1", "c1", "Yes.");
        |queries| queries.join_group("ada", "g1", "member");
        |queries| queries.leave_group("ada", "g1");
        |queries| queries.create_group("g1", "G", None);
        |queries| queries.add_team("acme", "t1", "T");
        |queries| queries.subscribe("ada", "s1", "monthly");
        |queries| queries.put_into_cart("ada", "c1", "pen", 1);
        |queries| queries.put_into_cart("ada", "c1", "pen", 2);
    };
    let things = steps! {
        |queries| queries.create_product("pen", product("1.5", 10));
        |queries| queries.create_product("ink", product("2.5", 10));
        |queries| queries.change_product("pen", ProductEdit { category: Some("gifts".to_owned()), ..Default::default() });
        |queries| queries.set_inventory("pen", 10, 20);
        |queries| queries.add_tag("pen", "new");
        |queries| queries.remove_tag("pen", "new");
        |queries| queries.write_review("ada", "pen", "r1", 5, None);
        |queries| queries.place_order("ada", "o1", &[line("pen", 2), line("ink", 1)]);
        |queries| queries.change_order_status(&order_key(), OrderStatus::Paid);
        |queries| queries.change_order_status(&order_key(), OrderStatus::Cancelled);
        |queries| queries.add_reading(&NewReading { sensor_id: "s1".to_owned(), at_ms: START_MS, value: Decimal::from(1) });
        |queries| queries.create_folder("a", None, "A");
        |queries| queries.create_folder("b", Some("a"), "B");
        |queries| queries.upload_file("a", "x", NewFile { name: "x".to_owned(), size_bytes: 1 });
        |queries| queries.move_file(&file_key("a"), "b");
        |queries| queries.delete_file(&file_key("b"));
        |queries| queries.rename_folder("b", "C");
        |queries| queries.move_folder("b", None);
        |queries| queries.delete_folder("a");
        |queries| queries.hire("acme", "ceo", "Ceo", None);
        |queries| queries.hire("acme", "vp", "Vp", Some("ceo"));
        |queries| queries.move_employee("acme", "vp", None);
        |queries| queries.dismiss("acme", "vp");
        |queries| queries.delete_user("ada");
    };
    people.into_iter().chain(things).collect()
}

/// The story with failing first writes in every step: the result of each step, and the table afterwards.
async fn outcome(faults: impl Fn() -> Faults) -> (Vec<String>, Vec<(Key, Item)>) {
    let calm = Model::new(Faults::None);
    let mut said = Vec::new();
    for (at, step) in story().into_iter().enumerate() {
        let model = Model::on(&calm.database, faults());
        said.push(match step(&model.queries).await {
            Ok(answer) => answer,
            Err(error) => panic!("step {at}: {error:?}"),
        });
    }
    (said, calm.items())
}

#[test]
fn what_goes_wrong_with_a_write_makes_no_difference() {
    runtime().block_on(async {
        let wanted = outcome(|| Faults::None).await;
        for side in [Side::Before, Side::After] {
            for fault in [Fault::Unanswered, Fault::Conflict(0), Fault::Throttle([0].into())] {
                for n_faults in [1, 3] {
                    let (said, items) = outcome(|| Faults::Writes(side, fault.clone(), 0..n_faults)).await;
                    assert_eq!(said, wanted.0, "{side:?} {fault:?}");
                    assert_eq!(shown(&items), shown(&wanted.1), "{side:?} {fault:?}");
                }
            }
        }
    });
}

#[test]
fn wp_08_an_order_that_somebody_else_placed_is_not_ours_when_an_answer_is_lost() {
    runtime().block_on(async {
        let model = Model::new(Faults::None);
        let (ada, order, lines) = ("ada", "o1", [line("pen", 1)]);
        model.queries.create_product("pen", product("1.5", 10)).await.unwrap();
        // Both read before either is placed; the one whose responses are lost is never done, and comes second.
        let lost = Model::at(&model.database, Faults::Writes(Side::Before, Fault::Unanswered, 0..1), START_MS + 1);
        let (lost, placed) = futures::future::join(
            lost.queries.place_order(ada, order, &lines),
            model.queries.place_order(ada, order, &lines),
        )
        .await;
        placed.unwrap();
        assert!(matches!(lost, Err(WriteError::AlreadyPlaced { .. })), "{lost:?}");
        assert_eq!(model.items().len(), 3);
    });
}

#[test]
fn wp_15_a_view_that_was_not_answered_is_not_counted_twice() {
    runtime().block_on(async {
        let model = Model::new(Faults::None);
        model.queries.create_product("pen", product("1.5", 10)).await.unwrap();
        let lost = Model::on(&model.database, Faults::Writes(Side::After, Fault::Unanswered, 0..1));
        let error = lost.queries.count_product_view("pen").await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "PRODUCT#pen / METADATA: not done in 1 tries, as far as it was answered; send it again later"
        );
        let pen = model.item("PRODUCT#pen", "METADATA").unwrap();
        assert_eq!(pen.get("ViewCount"), Some(&crate::writes::bed::n(1)));
    });
}

#[test]
fn a_write_gives_up_after_so_many_tries_and_says_whether_it_may_be_done() {
    runtime().block_on(async {
        for (fault, is_lost) in [(Fault::Conflict(0), false), (Fault::Unanswered, true)] {
            let model = Model::new(Faults::Writes(Side::Before, fault, 0..usize::MAX));
            let error = model.queries.create_user("ada", user("Ada", "ada@example.org")).await.unwrap_err();
            match &error {
                WriteError::Busy { n_tries, is_uncertain, .. } => {
                    assert_eq!((*n_tries, *is_uncertain), (TRIES_MAX, is_lost));
                }
                other => panic!("{other:?}"),
            }
            assert!(!error.to_string().contains("example.org"), "{error}");
            assert!(model.items().is_empty());
        }
    });
}

#[test]
fn a_pause_is_bounded_and_grows() {
    let bounds = Arc::new(std::sync::Mutex::new(Vec::new()));
    runtime().block_on(async {
        let model = Model::new(Faults::Writes(Side::Before, Fault::Conflict(0), 0..9));
        let seen = Arc::clone(&bounds);
        let queries = model.queries.pausing(move |bound_ms| {
            seen.lock().unwrap().push(bound_ms);
            Box::pin(std::future::ready(()))
        });
        queries.create_group("g1", "G", None).await.unwrap();
    });
    assert_eq!(*bounds.lock().unwrap(), [20, 40, 80, 160, 320, 640, 1_000, 1_000, 1_000]);
}

#[test]
fn wp_16_an_edit_that_nobody_answers_is_done_once() {
    runtime().block_on(async {
        let model = Model::new(Faults::None);
        let review = model.queries.write_review("ada", "pen", "r1", 5, None).await.unwrap();
        let lost = Model::on(&model.database, Faults::Writes(Side::After, Fault::Unanswered, 0..2));
        lost.queries.edit_review(&review, ReviewEdit { rating: Some(1), ..Default::default() }).await.unwrap();
        let records = model.database.take_records();
        assert_eq!(records.len(), 2, "{records:?}");
    });
}
