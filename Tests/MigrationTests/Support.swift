import BuiltinPolicies
import Migration
import PolicyEngine
import SystemIO

/// The built-in tables.
let builtin = MigrationLibrary(
  BuiltinPolicies.migrations.map {
    PolicySource(name: "builtin:\($0.name)", bytes: $0.bytes, origin: .builtin)
  })

/// Returns the route of an app between two forms in the home directories of two users, according to
/// the built-in tables.
func makeRoute(
  _ app: ByteString, from: Packaging, to target: ByteString, as packaging: Packaging,
  homes: (ByteString, ByteString) = ("/home/u", "/home/u")
) -> MigrationRoute {
  MigrationRoute(
    from: MigrationEnd(from, app: app, home: homes.0),
    to: MigrationEnd(packaging, app: target, home: homes.1), in: builtin)
}

/// Reads a table from a text.
func table(_ text: String) -> (table: MigrationTable?, issues: [PolicyIssue]) {
  MigrationTable.read(PolicySource(name: "t.yaml", text: text, origin: .user))
}

/// A table of one app with places and examples, each on its own line.
func text(
  places: [String], examples: [String],
  head: String = "apps: {flatpak: org.example.App, deb: app}\n"
) -> String {
  "migration: t\nschema: 1\n\(head)places:\n" + places.map { "  - \($0)\n" }.joined()
    + "examples:\n" + examples.map { "  - \($0)\n" }.joined()
}

/// A place and an example that together are valid.
let goodPlace = "{id: a, host: .config/a, flatpak: config/a, source: x}"
let goodExample = "{from: deb, to: flatpak, path: .config/a/b, becomes: config/a/b}"
