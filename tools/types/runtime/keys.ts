/** A number as a key takes it. A number of more than 15 digits is exact only as a text or a bigint. */
export type KeyNumber = string | number | bigint;

export type Piece =
  | readonly ["literal" | "text" | "plain" | "path" | "last" | "raw", string]
  | readonly ["padded" | "inverted", string, number, number]
  | readonly ["spread" | "lower" | "upper", string, number];

const PARTITION_KEY_BYTES_MAX = 2048;
const SORT_KEY_BYTES_MAX = 1024;

/** A value that the key cannot hold. */
export class InvalidKey extends Error {
  constructor(
    readonly entity: string,
    readonly attribute: string,
    readonly problem: string,
  ) {
    super(`${entity}.${attribute} ${problem}`);
    this.name = "InvalidKey";
  }
}

/** The form of a key in the table, or in an index. An attribute that holds a value as it is has no name here. */
export class KeyForm<Fields extends object, Read extends object, Key> {
  constructor(
    readonly entity: string,
    readonly index: string | undefined,
    readonly names: readonly [string, string],
    readonly partition: readonly Piece[],
    readonly sort: readonly Piece[],
    readonly onlyIf?: readonly [string, readonly string[] | undefined],
  ) {}

  /** The key's two attributes; undefined if the item is not in the index. Throws InvalidKey. */
  build(fields: Fields): Key {
    const values = new Map<string, unknown>(Object.entries(fields));
    if (this.onlyIf) {
      const [attribute, texts] = this.onlyIf;
      const held = values.get(attribute);
      if (held === undefined || held === null || (texts && !texts.includes(held as string))) return undefined as Key;
    }
    const partition = this.limited(this.partition, values, PARTITION_KEY_BYTES_MAX);
    const sort = this.limited(this.sort, values, SORT_KEY_BYTES_MAX);
    const named = [[this.names[0], partition], [this.names[1], sort]].filter(([name]) => name);
    return Object.fromEntries(named) as Key;
  }

  /** The fields of the key of an item; undefined if it is of another form. */
  parse(item: object): Read | undefined {
    const attributes = new Map<string, unknown>(Object.entries(item));
    const [partition, sort] = this.names.map((name) => (name ? attributes.get(name) : ""));
    const fields = new Map<string, string>();
    if (typeof partition !== "string" || typeof sort !== "string") return undefined;
    const isOfForm = read(this.partition, partition, fields) && read(this.sort, sort, fields);
    return isOfForm ? (Object.fromEntries(fields) as Read) : undefined;
  }

  /** The partition keys that a reader queries: one, or one for each suffix of a spread. */
  partitionKeys(fields: Partial<Fields>): string[] {
    const values = new Map<string, unknown>(Object.entries(fields));
    const spread = this.partition.find((piece) => piece[0] === "spread");
    if (spread?.[0] !== "spread") return [this.built(this.partition, values)];
    return Array.from({ length: spread[2] }, (_, suffix) => {
      const literal = ["literal", String(suffix).padStart(2, "0")] as const;
      return this.built(this.partition.map((piece) => (piece[0] === "spread" ? literal : piece)), values);
    });
  }

  /** The longest start of the sort key that these fields decide, for begins_with. */
  sortKeyPrefix(fields: Partial<Fields>): string {
    return this.built(this.sort, new Map<string, unknown>(Object.entries(fields)), true);
  }

  private limited(pieces: readonly Piece[], values: Map<string, unknown>, limit: number): string {
    const key = this.built(pieces, values);
    const bytes = utf8(key).length;
    if (bytes > limit) {
      const names = [...new Set(pieces.filter((piece) => piece[0] !== "literal").map((piece) => piece[1]))];
      throw new InvalidKey(this.entity, names.at(-1) ?? key, `makes a key of ${bytes} bytes; the limit is ${limit}`);
    }
    return key;
  }

  private built(pieces: readonly Piece[], values: Map<string, unknown>, isPrefix = false): string {
    let key = "";
    for (const piece of pieces) {
      if (piece[0] === "literal") {
        key += piece[1];
        continue;
      }
      const value = values.get(piece[1]) ?? undefined;
      if (value === undefined && isPrefix) break;
      try {
        key += textOf(piece, valueOf(value));
      } catch (error) {
        if (error instanceof Problem) throw new InvalidKey(this.entity, piece[1], error.message);
        throw error;
      }
    }
    if (!isPrefix && isOpen(pieces)) this.certain(pieces, key, values);
    return key;
  }

  /** Refuses a key that can be read in another way than by these values. */
  private certain(pieces: readonly Piece[], key: string, values: Map<string, unknown>): void {
    const read = readOpen(pieces, key);
    const isSame = (piece: Piece) => !TEXTS.has(piece[0]) || read?.get(piece[1]) === cased(piece, String(values.get(piece[1])));
    if (read && pieces.every(isSame)) return;
    const texts = pieces.flatMap((piece) => (piece[0] === "literal" && !piece[1].includes("#") ? [piece[1]] : []));
    const names = [...new Set(pieces.flatMap((piece) => (piece[0] === "literal" ? [] : [piece[1]])))];
    const held = (name: string) => texts.find((text) => String(values.get(name)).includes(text));
    const name = names.find((name) => held(name) !== undefined) ?? names[0] ?? "";
    const text = held(name) ?? texts[0] ?? "";
    const problem = `makes a key that can be read in two ways, as \`${text}\` separates its values: `;
    const remedy = "use `#` there, or mark one field whose values hold it with `*`, as in {name*}";
    throw new InvalidKey(this.entity, name, problem + remedy);
  }
}

/** Forms that contain their value as a text. */
const TEXTS: ReadonlySet<string> = new Set(["text", "plain", "lower", "upper", "path", "raw"]);

/** The text of a piece in its case. */
function cased(piece: Piece, text: string): string {
  if (piece[0] === "lower") return text.toLowerCase();
  return piece[0] === "upper" ? text.toUpperCase() : text;
}

class Problem extends Error {}

function valueOf(value: unknown): string {
  if (value === undefined) throw new Problem("is missing; the key needs it");
  if (typeof value !== "string" && typeof value !== "number" && typeof value !== "bigint")
    throw new Problem("is neither a text nor a number");
  if (value === "") throw new Problem("is empty; a key value must not be");
  return String(value);
}

function textOf(piece: Piece, value: string): string {
  switch (piece[0]) {
    case "text":
      return escaped(value);
    case "plain":
      if (value.includes("#")) throw new Problem("holds `#`, which a key of this table cannot hold in a value");
      return value;
    case "lower":
    case "upper":
      return textOf([piece[2] ? "text" : "plain", piece[1]], cased(piece, value));
    case "path":
      return segments(value).map((segment) => "/" + escaped(segment).replace(/\//g, "%2F")).join("");
    case "last":
      return escaped(segments(value).at(-1) ?? "");
    case "padded":
      return padded(value, piece[2], piece[3]);
    case "inverted":
      return complement(padded(value, piece[2], piece[3]));
    case "spread":
      return String(crc32(value) % piece[2]).padStart(2, "0");
    default:
      return value;
  }
}

function escaped(text: string): string {
  return text.replace(/%/g, "%25").replace(/#/g, "%23");
}

function restored(text: string): string {
  return text.replace(/%23|%25|%2F/g, (escape) => (escape === "%23" ? "#" : escape === "%25" ? "%" : "/"));
}

function segments(text: string): string[] {
  const found = text.split("/").slice(1).map(restored);
  if (!text.startsWith("/") || text.includes("#") || found.includes(""))
    throw new Problem("is not a path: it starts with `/`, and no segment is empty or holds `#`");
  return found;
}

/** The number in the unit of its last place, padded with zeros. */
function padded(value: string, digits: number, places: number): string {
  let unit: string;
  if (places === 0 && /^[0-9]+$/.test(value)) {
    unit = value.replace(/^0+/, "");
  } else {
    const number = decimal(value);
    if (!number || number.isNegative || (places === 0 && number.exponent < 0))
      throw new Problem(
        places ? "is not a number from 0 up, of at most 38 digits" : "is not a whole number from 0 up",
      );
    const zeros = number.exponent + places;
    // Too many places do not fit, as too many digits do not.
    unit = zeros >= 0 ? number.digits + "0".repeat(zeros) : "0".repeat(digits + 1);
  }
  if (unit.length > digits)
    throw new Problem(`does not fit in ${digits} digits` + (places ? `, ${places} of them behind the point` : ""));
  return unit.padStart(digits, "0");
}

/** A number: its digits without zeros around them, and the power of ten of the last. */
function decimal(text: string): { isNegative: boolean; digits: string; exponent: number } | undefined {
  const parts = /^([0-9+.-]*)(?:[eE]([+-]?[0-9]+))?$/.exec(text);
  if (text.length > 512 || !parts) return undefined;
  const base = parts[1] ?? "";
  const point = base.indexOf(".");
  const places = point < 0 ? "" : base.slice(point + 1);
  const number = /^([+-]?)([0-9]+)$/.exec(point < 0 ? base : base.slice(0, point) + places);
  const scale = BigInt(places.length) - BigInt((parts[2] ?? "0").replace("+", ""));
  if (!number || BigInt.asIntN(64, scale) !== scale) return undefined;
  const digits = (number[2] ?? "").replace(/^0+/, "");
  if (digits === "") return { isNegative: false, digits, exponent: 0 };
  const significant = digits.replace(/0+$/, "");
  const exponent = digits.length - significant.length - Number(scale);
  const first = significant.length + exponent - 1;
  if (significant.length > 38 || first < -130 || first > 125) return undefined;
  return { isNegative: number[1] === "-", digits: significant, exponent };
}

/** The largest number of so many digits, less this one. */
function complement(digits: string): string {
  return digits.replace(/[0-9]/g, (digit) => String(9 - Number(digit)));
}

function plain(unit: string, places: number): string {
  const digits = unit.replace(/^0+/, "").padStart(places + 1, "0");
  const whole = digits.slice(0, digits.length - places);
  const rest = digits.slice(digits.length - places).replace(/0+$/, "");
  return rest ? `${whole}.${rest}` : whole;
}

function crc32(text: string): number {
  let crc = 0xffffffff;
  for (const byte of utf8(text)) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return ~crc >>> 0;
}

function utf8(text: string): number[] {
  return Array.from(text).flatMap((character) => {
    const point = character.codePointAt(0) ?? 0;
    // Half of a pair is what an SDK sends for it.
    const code = point >= 0xd800 && point <= 0xdfff ? 0xfffd : point;
    const tail = (shift: number) => 0x80 | ((code >> shift) & 0x3f);
    if (code < 0x80) return [code];
    if (code < 0x800) return [0xc0 | (code >> 6), tail(0)];
    if (code < 0x10000) return [0xe0 | (code >> 12), tail(6), tail(0)];
    return [0xf0 | (code >> 18), tail(12), tail(6), tail(0)];
  });
}

/** Whether a text that separates fields may be in a value. */
function isOpen(pieces: readonly Piece[]): boolean {
  const first = pieces.findIndex((piece) => piece[0] !== "literal");
  return first >= 0 && pieces.slice(first).some((piece) => piece[0] === "literal" && !piece[1].includes("#"));
}

/** The most ends of fields that are tried. */
const ENDS_MAX = 1000;

/** The fields of a key that can be read in one way only. A raw field is as long as it can be. */
function readOpen(pieces: readonly Piece[], key: string): Map<string, string> | undefined {
  const enough = pieces.at(-1)?.[0] === "raw" ? 1 : 2;
  const found: Map<string, string>[] = [];
  let ends = 0;
  const search = (pieces: readonly Piece[], key: string, before: Map<string, string>): void => {
    const [piece, ...rest] = pieces;
    if (!piece) {
      if (key === "") found.push(before);
      return;
    }
    if (piece[0] === "literal") {
      if (key.startsWith(piece[1])) search(rest, key.slice(piece[1].length), before);
      return;
    }
    for (const end of endsOf(rest, key)) {
      ends += 1;
      if (found.length >= enough || ends > ENDS_MAX) return;
      const fields = new Map(before);
      if (readField(piece, key.slice(0, end), fields)) search(rest, key.slice(end), fields);
    }
  };
  const prefix = pieces[0]?.[0] === "literal" ? pieces[0][1] : "";
  if (!key.startsWith(prefix)) return undefined;
  const [first, ...rest] = prefix ? pieces.slice(1) : pieces;
  const inside = key.slice(prefix.length);
  if (first?.[0] !== "raw") {
    search(first ? [first, ...rest] : rest, inside, new Map());
  } else {
    for (const end of endsOf(rest, inside).reverse()) {
      ends += 1;
      if (end === 0) break;
      search(rest, inside.slice(end), new Map([[first[1], inside.slice(0, end)]]));
      if (found.length > 0 || ends > ENDS_MAX) break;
    }
  }
  return found.length === 1 && ends <= ENDS_MAX ? found[0] : undefined;
}

/** Where a field may end: before each text that follows it. */
function endsOf(rest: readonly Piece[], key: string): number[] {
  const literal = rest[0]?.[1];
  if (literal === undefined) return [key.length];
  const ends: number[] = [];
  for (let at = key.indexOf(literal); at >= 0; at = key.indexOf(literal, at + 1)) ends.push(at);
  return ends;
}

function read(pieces: readonly Piece[], key: string, fields: Map<string, string>): boolean {
  if (isOpen(pieces)) {
    const found = readOpen(pieces, key);
    if (!found || ![...found].every(([name, value]) => (fields.get(name) ?? value) === value)) return false;
    found.forEach((value, name) => fields.set(name, value));
    return true;
  }
  const [piece, ...rest] = pieces;
  if (!piece) return key === "";
  if (piece[0] === "literal") return key.startsWith(piece[1]) && read(rest, key.slice(piece[1].length), fields);
  if (piece[0] === "raw") return readRaw(piece[1], rest, key, fields);
  const end = rest[0] ? key.indexOf(rest[0][1]) : key.length;
  return end >= 0 && readField(piece, key.slice(0, end), fields) && read(rest, key.slice(end), fields);
}

/** A raw field may hold anything, so the last place where the rest fits ends it. */
function readRaw(name: string, rest: readonly Piece[], key: string, fields: Map<string, string>): boolean {
  if (!rest[0]) {
    fields.set(name, key);
    return key !== "";
  }
  for (let end = key.lastIndexOf(rest[0][1]); end > 0; end = key.slice(0, end).lastIndexOf(rest[0][1])) {
    const found = new Map<string, string>();
    if (!read(rest, key.slice(end), found)) continue;
    found.set(name, key.slice(0, end));
    if ([...found].every(([other, value]) => (fields.get(other) ?? value) === value)) {
      found.forEach((value, other) => fields.set(other, value));
      return true;
    }
  }
  return false;
}

function readField(piece: Piece, text: string, fields: Map<string, string>): boolean {
  const value = fieldOf(piece, text);
  if (typeof value !== "string") return value;
  const former = fields.get(piece[1]) ?? value;
  fields.set(piece[1], former);
  // A field may occur twice; then both must hold the same.
  return former === value;
}

/** The value of a field, or whether the text fits a field that is not read back. */
function fieldOf(piece: Piece, text: string): string | boolean {
  const isNumber = /^[0-9]+$/.test(text);
  switch (piece[0]) {
    case "text":
      // Only what is written as this text.
      return text !== "" && !text.includes("#") && escaped(restored(text)) === text && restored(text);
    case "plain":
      return text !== "" && !text.includes("#") && text;
    case "lower":
    case "upper": {
      const value = fieldOf([piece[2] ? "text" : "plain", piece[1]], text);
      // In another case, two keys would have the same fields.
      return typeof value === "string" && cased(piece, value) === value && value;
    }
    case "raw":
      return text !== "" && text;
    case "path":
      try {
        return textOf(piece, text) === text && text;
      } catch {
        return false;
      }
    case "padded":
      return isNumber && text.length === piece[2] && plain(text, piece[3]);
    case "inverted":
      return isNumber && text.length === piece[2] && plain(complement(text), piece[3]);
    case "spread":
      return isNumber && text.length === 2 && Number(text) < piece[2];
    default:
      return text !== "";
  }
}
