# `ripple dev` in a container: docs/run.md, "In a container", says how to use it.
FROM rust:1.95-bookworm AS build
WORKDIR /ripple
COPY Cargo.toml Cargo.lock ./
COPY benches benches
COPY examples examples
COPY functions functions
COPY infra infra
COPY shared shared
COPY tests tests
COPY tools tools
RUN cargo build --release --locked --package cli

FROM debian:bookworm-slim
COPY --from=build /ripple/target/release/ripple /usr/local/bin/ripple
USER nobody
EXPOSE 8000
ENTRYPOINT ["ripple"]
CMD ["dev", "--host", "0.0.0.0"]
