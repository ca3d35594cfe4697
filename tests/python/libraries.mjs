// Random operations by ElectroDB and by OneTable on the tables of their cases. Prints what the application then holds.
// Arguments: the library, the endpoint, the number of operations, the seed.
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { Entity } from "electrodb";
import { Table } from "dynamodb-onetable";
import { Dynamo } from "dynamodb-onetable/Dynamo";

const [library, endpoint, operations, seed] = process.argv.slice(2);
const client = new DynamoDBClient({
  endpoint,
  region: "us-east-1",
  credentials: { accessKeyId: "local", secretAccessKey: "local" },
});
let state = Number(seed);
// A linear congruential generator, so that a run can be repeated.
const below = (n) => {
  state = (state * 1103515245 + 12345) % 2147483648;
  return Math.floor((state / 2147483648) * n);
};
const one = (of) => of[below(of.length)];
const amount = () => below(10000) / 100;

async function electrodb() {
  const text = { type: "string" };
  const number = { type: "number" };
  const entity = (name, attributes, indexes) =>
    new Entity({ model: { entity: name, version: "1", service: "shop" }, attributes, indexes }, { client, table: "ripple" });
  const customers = entity(
    "customer",
    { email: text, name: text, orderCount: number, spent: number },
    { own: { pk: { field: "pk", composite: ["email"] }, sk: { field: "sk", composite: [] } } },
  );
  const orders = entity(
    "order",
    { orderId: text, email: text, placedAt: text, total: number, customerName: text },
    {
      own: { pk: { field: "pk", composite: ["orderId"] }, sk: { field: "sk", composite: [] } },
      byCustomer: {
        index: "gsi1",
        pk: { field: "gsi1pk", composite: ["email"] },
        sk: { field: "gsi1sk", composite: ["placedAt"] },
      },
    },
  );
  const held = { customers: {}, orders: {} };
  const emails = ["Ann@example.com", "bob@Example.com", "cleo@example.com"];
  const placedAt = () => `2026-01-${10 + below(20)}T10:00:00Z`;
  const steps = [
    async () => {
      const it = { email: one(emails), name: `name ${below(1000)}` };
      await customers.put(it).go();
      held.customers[it.email] = it;
    },
    async () => {
      const it = one(Object.values(held.customers));
      if (!it) return;
      it.name = `name ${below(1000)}`;
      await customers.patch({ email: it.email }).set({ name: it.name }).go();
    },
    async () => {
      const it = one(Object.values(held.customers));
      if (!it || below(4)) return;
      await customers.delete({ email: it.email }).go();
      delete held.customers[it.email];
    },
    async () => {
      const it = { orderId: `O-${below(40)}`, email: one(emails), placedAt: placedAt(), total: amount() };
      await orders.put(it).go();
      held.orders[it.orderId] = it;
    },
    async () => {
      const it = one(Object.values(held.orders));
      if (!it) return;
      it.total = amount();
      await orders.patch({ orderId: it.orderId }).set({ total: it.total }).go();
    },
    async () => {
      const it = one(Object.values(held.orders));
      if (!it) return;
      Object.assign(it, { email: one(emails), placedAt: placedAt() });
      await orders.patch({ orderId: it.orderId }).set({ email: it.email, placedAt: it.placedAt }).go();
    },
    async () => {
      const it = one(Object.values(held.orders));
      if (!it || below(4)) return;
      await orders.delete({ orderId: it.orderId }).go();
      delete held.orders[it.orderId];
    },
  ];
  return { steps, held };
}

async function onetable() {
  const schema = {
    format: "onetable:1.1.0",
    version: "0.0.1",
    indexes: { primary: { hash: "pk", sort: "sk" } },
    models: {
      Account: {
        pk: { type: String, value: "account#${id}" },
        sk: { type: String, value: "account#" },
        id: { type: String },
        name: { type: String },
      },
      User: {
        pk: { type: String, value: "account#${accountId}" },
        sk: { type: String, value: "user:${email}" },
        accountId: { type: String },
        email: { type: String },
        role: { type: String },
      },
      Invoice: {
        pk: { type: String, value: "account#${accountId}" },
        sk: { type: String, value: "invoice:${month}:${number}" },
        accountId: { type: String },
        month: { type: String },
        number: { type: String },
        total: { type: Number },
      },
    },
  };
  const table = new Table({ client: new Dynamo({ client }), name: "ripple", schema, partial: true });
  const [accounts, users, invoices] = ["Account", "User", "Invoice"].map((name) => table.getModel(name));
  const held = { accounts: {}, users: {}, invoices: {} };
  const ids = ["a1", "b2", "c3"];
  const steps = [
    async () => {
      const it = { id: one(ids), name: `name ${below(1000)}` };
      await accounts.create(it, { exists: null });
      held.accounts[it.id] = it;
    },
    async () => {
      const it = one(Object.values(held.accounts));
      if (!it) return;
      it.name = `name ${below(1000)}`;
      await accounts.update({ id: it.id, name: it.name });
    },
    async () => {
      const it = one(Object.values(held.accounts));
      if (!it || below(4)) return;
      await accounts.remove({ id: it.id });
      delete held.accounts[it.id];
    },
    async () => {
      const it = { accountId: one(ids), email: `u${below(12)}@example.com`, role: one(["admin", "reader"]) };
      await users.create(it, { exists: null });
      held.users[`${it.accountId} ${it.email}`] = it;
    },
    async () => {
      const [key, it] = one(Object.entries(held.users)) ?? [];
      if (!it || below(4)) return;
      await users.remove({ accountId: it.accountId, email: it.email });
      delete held.users[key];
    },
    async () => {
      const it = { accountId: one(ids), month: `2026-0${1 + below(9)}`, number: `${below(5)}`, total: amount() };
      await invoices.create(it, { exists: null });
      held.invoices[`${it.accountId} ${it.month} ${it.number}`] = it;
    },
    async () => {
      const it = one(Object.values(held.invoices));
      if (!it) return;
      it.total = amount();
      await invoices.update(it);
    },
    async () => {
      const [key, it] = one(Object.entries(held.invoices)) ?? [];
      if (!it || below(4)) return;
      await invoices.remove({ accountId: it.accountId, month: it.month, number: it.number });
      delete held.invoices[key];
    },
  ];
  return { steps, held };
}

const { steps, held } = await { electrodb, onetable }[library]();
for (let n = 0; n < Number(operations); n += 1) await one(steps)();
console.log(JSON.stringify(held));
