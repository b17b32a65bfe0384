//! Operations of the management node itself: what is there, and what can be asked of it.

use crate::error::{Error, quoted};
use crate::kind::{KINDS, Kind};
use crate::request::Request;
use crate::response::Answer;
use crate::scope::Scope;
use mochila_wire::{Encode, Map, Value};

/// Something that can be asked of the management node.
#[derive(Debug)]
pub(crate) struct NodeOperation {
    pub(crate) name: &'static str,
    /// What it does, in a sentence or more.
    pub(crate) doc: &'static str,
    pub(crate) perform: fn(&Scope<'_>, &Request) -> Result<Answer, Error>,
}

/// Everything that can be asked of the management node.
pub(crate) const NODE_OPERATIONS: &[NodeOperation] = &[
    NodeOperation {
        name: "QUERY",
        doc: "Answers with attributes of all entities of the type `entityType`, or of all types. The \
              body's `attributeNames` says which; an empty list, or none, means all. The answer's \
              body has `attributeNames` and `results`: a list of values for each entity, in that \
              order. `offset` and `count` select entities by their place in the whole list. An \
              answer holds as many entities as fit in about 1 MiB and 50,000 values, and fewer when \
              the node is short of memory: its application \
              property `count` says how many, `total` how many there are, and `nextOffset`, where \
              there are more, with which offset to go on.",
        perform: query,
    },
    NodeOperation {
        name: "GET-TYPES",
        doc: "Answers with a map of types, or of one, to what they extend: nothing.",
        perform: |_, request| describe(request, |_| Vec::new()),
    },
    NodeOperation {
        name: "GET-ATTRIBUTES",
        doc: "Answers with a map of types, or of one, to lists of attributes.",
        perform: |_, request| {
            describe(request, |kind| kind.columns.iter().map(|column| column.name).collect())
        },
    },
    NodeOperation {
        name: "GET-OPERATIONS",
        doc: "Answers with a map of types, or of one, to lists of operations.",
        perform: |_, request| {
            describe(request, |kind| kind.operations.iter().map(|known| known.name).collect())
        },
    },
    NodeOperation {
        name: "GET-MGMT-NODES",
        doc: "Answers with the addresses of other management nodes that this one knows: none.",
        perform: |_, request| {
            request.expect_only(&[])?;
            Ok(Answer::ok(Vec::<Value>::new()))
        },
    },
];

/// The types that a request is about: one, or all.
fn kinds(request: &Request) -> Result<&'static [Kind], Error> {
    Ok(match &request.kind {
        None => &KINDS,
        Some(name) => std::slice::from_ref(Kind::named(name)?),
    })
}

fn describe(
    request: &Request,
    members: impl Fn(&Kind) -> Vec<&'static str>,
) -> Result<Answer, Error> {
    request.expect_only(&[])?;
    let map = kinds(request)?.iter().map(|kind| {
        let members = members(kind).into_iter().map(Value::from).collect();
        (Value::from(kind.name), Value::List(members))
    });
    Ok(Answer::ok(map.collect::<Map>()))
}

fn query(scope: &Scope<'_>, request: &Request) -> Result<Answer, Error> {
    request.expect_only(&["attributeNames", "offset", "count"])?;
    let kinds = kinds(request)?;
    let names = attribute_names(kinds, &request.names("attributeNames")?)?;
    let offset = number(request, "offset")?.unwrap_or(0);
    let most = number(request, "count")?.unwrap_or(usize::MAX);

    let objects: Vec<_> = kinds.iter().flat_map(|kind| (kind.list)(scope.management)).collect();
    let columns: Vec<Vec<Option<usize>>> =
        KINDS.iter().map(|kind| names.iter().map(|name| kind.column(name)).collect()).collect();
    let most_bytes = MOST_BYTES.min(scope.room);
    let (mut results, mut values_told, mut row) = (Vec::new(), 0, Vec::new());
    let mut bytes = names.iter().map(|name| name.len() + NAME_HEAD).sum::<usize>();
    for object in objects.iter().skip(offset).take(most) {
        let reading = object.open(scope);
        let columns = &columns[object.kind().place()];
        let values: Vec<Value> = columns
            .iter()
            .map(|column| column.map_or(Value::Null, |column| reading.read(column, scope)))
            .collect();
        row.clear();
        values.as_slice().encode(&mut row);
        bytes += row.len();
        values_told += values.iter().map(values_in).sum::<usize>();
        if bytes > most_bytes || values_told > MOST_VALUES {
            match results.is_empty() {
                true if bytes > scope.room => return Err(Error::no_room_for(bytes)),
                true => {}
                false => break,
            }
        }
        results.push(Value::List(values));
    }

    let next = offset.saturating_add(results.len());
    let mut properties = vec![
        ("count", Value::from(results.len() as u64)),
        ("total", Value::from(objects.len() as u64)),
    ];
    if next < objects.len() {
        properties.push(("nextOffset", Value::from(next as u64)));
    }
    let mut body = Map::new();
    body.insert("attributeNames", names.into_iter().map(Value::from).collect::<Vec<_>>());
    body.insert("results", results);
    Ok(Answer { properties, ..Answer::ok(body) })
}

/// The attributes asked for; all that the types have if none are named.
fn attribute_names<'a>(kinds: &'static [Kind], asked: &[&'a str]) -> Result<Vec<&'a str>, Error> {
    if asked.is_empty() {
        let mut names: Vec<&str> = Vec::new();
        for column in kinds.iter().flat_map(|kind| kind.columns.iter()) {
            if !names.contains(&column.name) {
                names.push(column.name);
            }
        }
        return Ok(names);
    }
    match asked.iter().find(|name| kinds.iter().all(|kind| kind.column(name).is_none())) {
        None => Ok(asked.to_vec()),
        Some(unknown) => Err(Error::BadRequest(match kinds {
            [kind] => format!("{} has no attribute {}", kind.with_article(), quoted(unknown)),
            _ => format!("nothing has an attribute {}", quoted(unknown)),
        })),
    }
}

/// How many values a value is, with all that is in it.
fn values_in(value: &Value) -> usize {
    let within = match value {
        Value::List(items) => items.iter().map(values_in).sum(),
        Value::Map(map) => map.iter().map(|(key, value)| values_in(key) + values_in(value)).sum(),
        _ => 0,
    };
    1 + within
}

fn number(request: &Request, name: &str) -> Result<Option<usize>, Error> {
    let number = request.number(name)?;
    Ok(number.map(|number| usize::try_from(number).unwrap_or(usize::MAX)))
}

/// What the encoding of a name has besides the name itself.
const NAME_HEAD: usize = 2;
/// How large the results of one answer may become.
const MOST_BYTES: usize = 1 << 20;
/// How many values the results of one answer may have. Proton keeps at most 65,535 of a body and says
/// nothing of the rest; this leaves room for the rows themselves and the names of attributes.
const MOST_VALUES: usize = 50_000;
