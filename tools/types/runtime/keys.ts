/** A number as a key takes it. A number of more than 15 digits is exact only as a text or a bigint. */
export type KeyNumber = string | number | bigint;

export type Piece =
  | readonly ["literal" | "text" | "plain" | "path" | "last" | "raw", string]
  | readonly ["padded" | "inverted", string, number, number]
  | readonly ["spread", string, number];

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
    return key;
  }
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

function read(pieces: readonly Piece[], key: string, fields: Map<string, string>): boolean {
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
