// ---- Reads ----

/** The part of `DynamoDBDocument`, of @aws-sdk/lib-dynamodb, that the functions call. */
export interface DocumentClient {
  get(input: GetInput): Promise<{ Item?: Item | undefined }>;
  batchGet(input: { RequestItems: Record<string, { Keys: Item[]; ConsistentRead: boolean }> }): Promise<BatchGetOutput>;
  query(input: QueryInput): Promise<{ Items?: Item[] | undefined; LastEvaluatedKey?: Item | undefined }>;
}

type Item = Record<string, any>;
type GetInput = { TableName: string; Key: Item; ConsistentRead: boolean };
type BatchGetOutput = {
  Responses?: Record<string, Item[]> | undefined;
  UnprocessedKeys?: Record<string, { Keys?: Item[] | undefined }> | undefined;
};
type QueryInput = {
  TableName: string;
  KeyConditionExpression: string;
  ExpressionAttributeNames: Record<string, string>;
  ExpressionAttributeValues: Record<string, any>;
  ScanIndexForward: boolean;
  ConsistentRead: boolean;
  Limit: number;
  IndexName?: string;
  FilterExpression?: string;
  ExclusiveStartKey?: Item;
};

/** A page of items. Without a cursor it is the last one, even if another has fewer items than its limit. */
export interface Page<Of> {
  items: Of[];
  cursor?: string;
}

/** What a caller may choose of a query. `low` and `high` are bounds of the next field of the sort key, inclusive. */
export interface PageOptions<Bound = never> {
  low?: Bound | undefined;
  high?: Bound | undefined;
  limit?: number | undefined;
  cursor?: string | undefined;
  order?: "ascending" | "descending" | undefined;
  consistent?: boolean | undefined;
}

/** The count and the sum of a derivation. Numbers of more than 15 digits are not exact. */
export interface Counted {
  count: number;
  sum?: number;
}

/** A cursor that is damaged, or of another query. */
export class InvalidCursor extends Error {
  constructor(of: string) {
    super(`the cursor is damaged, or not one of ${of} with these values`);
    this.name = "InvalidCursor";
  }
}

export interface Read {
  name: string;
  form: KeyForm<any, any, any>;
  /** Key attributes of the table, and those that are numbers. */
  table: readonly string[];
  numbers: readonly string[];
  /** The type attribute, and the entities of its items; or the forms of their keys; neither if all items are. */
  type?: string;
  entities: readonly string[];
  forms: readonly KeyForm<any, any, any>[];
  consistent: boolean;
}

export interface Range extends Read {
  fields: readonly string[];
  next?: string;
  below?: boolean;
  range?: readonly [string, string];
  descending: boolean;
  limit: number;
  filter?: { text: string; names: readonly string[]; values: readonly ({ input: string } | { literal: unknown })[] };
}

/** Requests to a partition for a page. A page ends early if nearly all items are left out. */
const ROUNDS_MAX = 10;
const LIMIT_MAX = 1000;

function isOf(read: Read, item: Item): boolean {
  if (read.type !== undefined) return read.entities.includes(item[read.type] as string);
  return read.forms.length === 0 || read.forms.some((form) => form.parse(item) !== undefined);
}

/** A number of a key as the client takes it. */
function typed(read: Read, name: string, text: string): unknown {
  if (!read.numbers.includes(name)) return text;
  if (!decimal(text)) throw new InvalidKey(read.form.entity, name, "is not a number of at most 38 digits");
  return /^-?[0-9]+$/.test(text) ? BigInt(text) : Number(text);
}

function keyOf(read: Read, fields: object): Item {
  const key = read.form.build(fields) as Record<string, string>;
  return Object.fromEntries(Object.entries(key).map(([name, text]) => [name, typed(read, name, text)]));
}

export function getter<Fields extends object, Of>(read: Read) {
  return async (
    client: DocumentClient,
    table: string,
    fields: Fields,
    options: { consistent?: boolean } = {},
  ): Promise<Of | undefined> => {
    const ConsistentRead = options.consistent ?? read.consistent;
    const { Item } = await client.get({ TableName: table, Key: keyOf(read, fields), ConsistentRead });
    return Item && isOf(read, Item) ? (Item as Of) : undefined;
  };
}

declare function setTimeout(call: () => void, milliseconds: number): unknown;

export function batchGetter<Fields extends object, Of>(read: Read) {
  /** Items in any order, and the fields of those that are not there. Each key is read once. */
  return async (
    client: DocumentClient,
    table: string,
    all: readonly Fields[],
    options: { consistent?: boolean } = {},
  ): Promise<{ items: Of[]; missing: Fields[] }> => {
    const ConsistentRead = options.consistent ?? read.consistent;
    const textOf = (item: Item) => JSON.stringify(read.table.map((name) => String(item[name])));
    const asked = new Map(all.map((fields) => [textOf(keyOf(read, fields)), fields]));
    const [items, waiting, missing] = [[] as Of[], [...asked.values()].map((fields) => keyOf(read, fields)), new Map(asked)];
    for (let failures = 0; waiting.length > 0; ) {
      const Keys = waiting.splice(0, 100);
      const output = await client.batchGet({ RequestItems: { [table]: { Keys, ConsistentRead } } });
      for (const item of output.Responses?.[table] ?? []) {
        if (isOf(read, item) && missing.delete(textOf(item))) items.push(item as Of);
      }
      const unprocessed = output.UnprocessedKeys?.[table]?.Keys ?? [];
      waiting.push(...unprocessed);
      failures = unprocessed.length < Keys.length ? 0 : failures + 1;
      if (failures > 8) throw new Error(`DynamoDB has not processed ${waiting.length} keys of ${read.name}`);
      if (unprocessed.length > 0) await new Promise<void>((done) => setTimeout(done, 25 * 2 ** failures));
    }
    return { items, missing: [...missing.values()] };
  };
}

export function counter<Fields extends object>(read: Read) {
  /** By the name of the derivation; one that never counted anything is absent. */
  return async (client: DocumentClient, table: string, fields: Fields): Promise<Record<string, Counted>> => {
    const [pk = "", sk = ""] = read.table;
    const key = keyOf(read, fields);
    const prefix = `${key[sk]}#COUNT#`;
    const counts: Record<string, Counted> = {};
    let from: Item | undefined;
    do {
      const output = await client.query({
        TableName: table,
        KeyConditionExpression: "#p = :p AND begins_with(#s, :s)",
        ExpressionAttributeNames: { "#p": pk, "#s": sk },
        ExpressionAttributeValues: { ":p": key[pk], ":s": prefix },
        ScanIndexForward: true,
        ConsistentRead: read.consistent,
        Limit: LIMIT_MAX,
        ...(from && { ExclusiveStartKey: from }),
      });
      for (const item of output.Items ?? []) {
        const [, name] = /^([^#]+)#[0-9]{2}$/.exec(String(item[sk]).slice(prefix.length)) ?? [];
        if (name === undefined || !isOf(read, item)) continue;
        const counted = (counts[name] ??= { count: 0 });
        counted.count += Number(item["Value"] ?? 0);
        if (item["Sum"] !== undefined) counted.sum = (counted.sum ?? 0) + Number(item["Sum"]);
      }
      from = output.LastEvaluatedKey;
    } while (from);
    return counts;
  };
}

/** The position in a partition: before all of it, behind the item with this key, or at its end. */
type Position = 0 | 1 | string[];

interface Lane {
  partition: string;
  position: Position;
  ahead: Item[];
  isRead: boolean;
}

export function query<Fields extends object, Of, Bound = never>(read: Range) {
  return async (
    client: DocumentClient,
    table: string,
    fields: Fields,
    options: PageOptions<Bound> = {},
  ): Promise<Page<Of>> => {
    const limit = options.limit ?? read.limit;
    if (!Number.isInteger(limit) || limit < 1 || limit > LIMIT_MAX) throw new RangeError(`limit is from 1 to ${LIMIT_MAX}`);
    const order = options.order ?? (read.descending ? "descending" : "ascending");
    const descending = order === "descending";
    if (!descending && order !== "ascending") throw new RangeError("order is ascending or descending");
    const request = requestOf(read, table, fields, options, descending);
    const partitions = read.form.partitionKeys(fields);
    const scope = JSON.stringify([read.name, partitions, request], (_, value) => (typeof value === "bigint" ? String(value) : value));
    const positions = options.cursor === undefined ? partitions.map((): Position => 0) : opened(read, options.cursor, scope);
    const lanes: Lane[] = partitions.map((partition, at) => {
      const position = positions[at] ?? 0;
      return { partition, position, ahead: [], isRead: position === 1 };
    });
    const items: Of[] = [];
    const share = lanes.length > 1 ? Math.min(limit, Math.ceil((2 * limit) / lanes.length)) : limit;
    for (let rounds = 0; items.length < limit && rounds < ROUNDS_MAX; rounds++) {
      const behind = lanes.filter((lane) => lane.ahead.length === 0 && !lane.isRead);
      const wanted = Math.min(LIMIT_MAX, (lanes.length > 1 ? share : limit - items.length) * 2 ** rounds);
      await Promise.all(behind.map((lane) => fill(client, read, request, lane, wanted)));
      while (items.length < limit && lanes.every((lane) => lane.ahead.length > 0 || lane.isRead)) {
        const lane = first(read, lanes, descending);
        const item = lane?.ahead.shift();
        if (!lane || !item) return { items };
        lane.position = positionOf(read, item);
        if (isOf(read, item)) items.push(item as Of);
      }
    }
    const isEnded = (lane: Lane) => lane.isRead && lane.ahead.length === 0;
    if (lanes.every(isEnded)) return { items };
    return { items, cursor: sealed(lanes.map((lane) => (isEnded(lane) ? 1 : lane.position)), scope) };
  };
}

/** The request without its partition, limit and start. */
function requestOf(read: Range, table: string, fields: object, options: PageOptions<any>, descending: boolean) {
  const [pk, sk] = read.form.names;
  const names: Record<string, string> = { "#p": pk };
  const values: Record<string, unknown> = {};
  const given = new Map<string, unknown>(Object.entries(fields));
  // What is missing would widen the range.
  const inputs = (read.filter?.values ?? []).flatMap((value) => ("input" in value ? [value.input] : []));
  for (const name of [...read.fields, ...(read.below && read.next ? [read.next] : []), ...inputs]) {
    if ((given.get(name) ?? undefined) === undefined) throw new InvalidKey(read.form.entity, name, "is missing; the read needs it");
  }
  const sort = Object.fromEntries(read.fields.map((name) => [name, given.get(name)]));
  const range = sortKeys(read, sort, given, options);
  const condition = conditionOf(range);
  if (condition !== "") names["#s"] = sk;
  if (condition.includes(":l")) values[":l"] = typed(read, sk, range.least);
  if (condition.includes(":g")) values[":g"] = typed(read, sk, range.greatest ?? "");
  if (condition.includes(":l AND :g") && isLess(values[":g"], values[":l"])) {
    throw new InvalidKey(read.form.entity, read.next ?? "", "has a low that is behind its high in the order of the key");
  }
  read.filter?.names.forEach((name, at) => (names[`#n${at}`] = name));
  read.filter?.values.forEach((value, at) => {
    values[`:v${at}`] = "literal" in value ? value.literal : given.get(value.input);
  });
  return {
    TableName: table,
    KeyConditionExpression: "#p = :p" + condition,
    ExpressionAttributeNames: names,
    ExpressionAttributeValues: values,
    ScanIndexForward: !descending,
    ConsistentRead: options.consistent ?? read.consistent,
    ...(read.form.index !== undefined && { IndexName: read.form.index }),
    ...(read.filter && { FilterExpression: read.filter.text }),
  };
}

/** The sort keys that a query asks for: those that begin with the least, unless there is a greatest. */
interface SortKeys {
  least: string;
  greatest?: string | undefined;
  isOpen?: boolean;
}

function conditionOf({ least, greatest, isOpen }: SortKeys): string {
  if (greatest !== undefined) return least === "" ? " AND #s <= :g" : " AND #s BETWEEN :l AND :g";
  if (least === "") return "";
  return isOpen ? " AND #s >= :l" : " AND begins_with(#s, :l)";
}

function sortKeys(
  read: Range,
  sort: Record<string, unknown>,
  given: Map<string, unknown>,
  options: PageOptions<any>,
): SortKeys {
  const [low, high] = [options.low ?? undefined, options.high ?? undefined];
  if (read.range) return { least: read.range[0], greatest: read.range[1] || undefined };
  const { form, next } = read;
  if (next !== undefined && read.below) {
    return { least: form.sortKeyPrefix({ ...sort, [next]: given.get(next) }) + "/" };
  }
  const prefix = form.sortKeyPrefix(sort);
  if (next === undefined) {
    const isWhole = form.sort.every((piece) => piece[0] === "literal" || piece[1] in sort);
    return { least: prefix, greatest: isWhole && prefix !== "" ? prefix : undefined };
  }
  if (low === undefined && high === undefined) return { least: prefix };
  const isInverted = form.sort.some((piece) => piece[0] === "inverted" && piece[1] === next);
  const [from, to] = isInverted ? [high, low] : [low, high];
  const least = from === undefined ? prefix : form.sortKeyPrefix({ ...sort, [next]: from });
  if (to === undefined) return { least, greatest: past(prefix), isOpen: true };
  const greatest = form.sortKeyPrefix({ ...sort, [next]: to });
  const isLast = form.sort.at(-1)?.[1] === next;
  return { least, greatest: isLast ? greatest : past(greatest) };
}

/** The least text that is greater than every text with this prefix; undefined if there is none. */
function past(prefix: string): string | undefined {
  const characters = Array.from(prefix);
  while (characters.length > 0) {
    const last = characters.pop()?.codePointAt(0) ?? 0;
    const next = last === 0xd7ff ? 0xe000 : last + 1;
    if (next <= 0x10ffff) return characters.join("") + String.fromCodePoint(next);
  }
  return undefined;
}

async function fill(client: DocumentClient, read: Range, request: ReturnType<typeof requestOf>, lane: Lane, wanted: number) {
  const partition = typed(read, read.form.names[0], lane.partition);
  const output = await client.query({
    ...request,
    ExpressionAttributeValues: { ...request.ExpressionAttributeValues, ":p": partition },
    Limit: wanted,
    ...(typeof lane.position !== "number" && { ExclusiveStartKey: startOf(read, lane.partition, lane.position) }),
  });
  lane.ahead = output.Items ?? [];
  lane.isRead = output.LastEvaluatedKey === undefined;
  if (lane.ahead.length === 0 && output.LastEvaluatedKey) lane.position = positionOf(read, output.LastEvaluatedKey);
}

/** The lane with the next item of all. */
function first(read: Range, lanes: readonly Lane[], descending: boolean): Lane | undefined {
  let found: Lane | undefined;
  let least: unknown;
  for (const lane of lanes) {
    const next = lane.ahead[0];
    if (!next) continue;
    const key = next[read.form.names[1]] as unknown;
    if (found && !(descending ? isLess(least, key) : isLess(key, least))) continue;
    [found, least] = [lane, key];
  }
  return found;
}

/** The order of DynamoDB: of numbers by value, of texts by their bytes. */
function isLess(one: unknown, other: unknown): boolean {
  if (typeof one !== "string" || typeof other !== "string") return (one as number) < (other as number);
  const [left, right] = [utf8(one), utf8(other)];
  const at = left.findIndex((byte, at) => byte !== right[at]);
  return at < 0 ? left.length < right.length : (left[at] ?? 0) < (right[at] ?? -1);
}

/** The key attributes of a position, without the partition key of the query, which the caller gives again. */
function positionNames(read: Read): string[] {
  return [...new Set([read.form.names[1], ...read.table])].filter((name) => name && name !== read.form.names[0]);
}

function positionOf(read: Read, item: Item): string[] {
  return positionNames(read).map((name) => String(item[name]));
}

function startOf(read: Read, partition: string, position: string[]): Item {
  const start: Item = { [read.form.names[0]]: typed(read, read.form.names[0], partition) };
  positionNames(read).forEach((name, at) => (start[name] = typed(read, name, position[at] ?? "")));
  return start;
}

function sealed(positions: readonly Position[], scope: string): string {
  const text = JSON.stringify(positions);
  return encodeURIComponent(`${crc32(scope + text)}.${text}`);
}

function opened(read: Read, cursor: string, scope: string): Position[] {
  try {
    const [, checksum, text = ""] = /^([0-9]+)\.(.*)$/s.exec(decodeURIComponent(cursor)) ?? [];
    if (Number(checksum) === crc32(scope + text)) return JSON.parse(text) as Position[];
  } catch {
    // It is damaged, as below.
  }
  throw new InvalidCursor(read.name);
}

