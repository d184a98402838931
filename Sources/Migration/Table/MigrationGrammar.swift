package import Codecs
internal import PolicyEngine

/// The grammar of migration tables, `policies/migrations/*.yaml`: all keys and values.
package enum MigrationGrammar {
  /// The version of the grammar that this module reads, `schema:` in the files.
  static let schemaVersion = 1

  /// A whole file.
  static let file = Record(
    name: "file", title: "a migration table",
    keys: [
      Record.Key(
        name: "migration", shape: .identifier, isRequired: true, about: "The table's name."),
      Record.Key(
        name: "schema", shape: .integer(1...schemaVersion), isRequired: true,
        about: "The version of this grammar."),
      Record.Key(name: "title", shape: .text(), about: "The display name of the app."),
      Record.Key(
        name: "apps", shape: .record(apps),
        about: "The identifiers of the app. A table has either this key or general."),
      Record.Key(
        name: "general", shape: .bool,
        about: "The table is for all apps that have no table of their own."),
      Record.Key(
        name: "not-apps", shape: .list(.pattern),
        about:
          "The names in a home directory that belong to no app, such as those of the shell and of "
          + "the desktop. Only with general."),
      Record.Key(
        name: "places", shape: .list(.record(place)), isRequired: true,
        about: "The places of the app's data; the one with the longest path applies."),
      Record.Key(
        name: "notes", shape: .list(.record(note)),
        about: "What the user should know after the migration."),
      Record.Key(
        name: "examples", shape: .list(.record(example)), isRequired: true,
        about: "The table's tests, at least one for each place."),
    ],
    needsOneOf: ["apps", "general"])

  static let apps = Record(
    name: "apps", title: "the 'apps' section",
    keys: Packaging.written.map { packaging in
      Record.Key(
        name: packaging.rawValue, shape: .oneOrMany(.identifier),
        about: "The identifiers of the \(packaging.rawValue) app.")
    },
    needsAnyOf: Packaging.written.map(\.rawValue))

  static let place = Record(
    name: "place", title: "a place",
    keys: [
      Record.Key(
        name: "id", shape: .identifier, isRequired: true,
        about: "The identifier, unique in the file.")
    ]
      + Packaging.written.map { packaging in
        Record.Key(
          name: packaging.rawValue, shape: .text(),
          about: "The path in the \(packaging.rawValue) app, without '/' at the start.")
      } + [
        Record.Key(
          name: "skip", shape: .list(.record(skip)),
          about: "The entries below the place that are not moved."),
        Record.Key(
          name: "rewrite", shape: .oneOrMany(.choice(RewriteRule.self)),
          about: "The rules for configuration files with paths of the old place."),
        Record.Key(
          name: "source", shape: .text(), isRequired: true,
          about: "The document or file that states the paths."),
      ],
    needsAnyOf: Packaging.written.map(\.rawValue))

  static let skip = Record(
    name: "skip", title: "a skip rule",
    keys: [
      Record.Key(
        name: "match", shape: .pattern, isRequired: true,
        about: "The pattern of the entries, relative to the place."),
      Record.Key(
        name: "type", shape: .choice(["link"]),
        about: "Only symbolic links at exactly a path that the pattern matches."),
      Record.Key(name: "why", shape: .text(), isRequired: true, about: "The reason."),
    ])

  static let note = Record(
    name: "note", title: "a note",
    keys: [
      Record.Key(
        name: "to", shape: .oneOrMany(.choice(Packaging.written.map(\.rawValue))),
        about: "The forms of the target for which it holds (default: all)."),
      Record.Key(name: "text", shape: .text(), isRequired: true, about: "The text."),
    ])

  static let example = Record(
    name: "example", title: "an example",
    keys: [
      Record.Key(
        name: "from", shape: .choice(Packaging.written.map(\.rawValue)), isRequired: true,
        about: "The form of the source."),
      Record.Key(
        name: "to", shape: .choice(Packaging.written.map(\.rawValue)), isRequired: true,
        about: "The form of the target."),
      Record.Key(
        name: "path", shape: .text(), isRequired: true, about: "The entry in the source."),
      Record.Key(name: "becomes", shape: .text(), about: "The expected path in the target."),
      Record.Key(
        name: "outcome", shape: .choice(["no-home", "skipped"]),
        about: "The expected result for an entry that does not move."),
    ],
    needsOneOf: ["becomes", "outcome"])

  /// The JSON Schema of migration tables, for editors, without the line break at the end of the
  /// file.
  package static var schema: String { schemaDocument.pretty }

  /// The JSON Schema of migration tables.
  package static var schemaDocument: JSON {
    PolicySchema.document(
      of: file, title: "sandboxctl migration table",
      description: "The places of an app's data in the forms in which the app is installed.")
  }
}
