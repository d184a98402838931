internal import Codecs
internal import PolicyEngine
internal import SandboxModel

/// The grammar of scenarios: all keys and values (sandboxctl-scenario(5)).
package enum ScenarioGrammar {
  /// The JSON Schema of scenarios, for editors, as in `policies/scenario.schema.json`, without the
  /// line break at the end of the file.
  package static var schema: String {
    PolicySchema.document(
      of: file, title: "sandboxctl scenario",
      description:
        "A test of the life cycle of an app's data. See sandboxctl-scenario(5)."
    ).pretty
  }

  /// The version of the grammar that this module reads, `schema:` in the files.
  static let schemaVersion = 1

  private typealias Key = Record.Key

  /// A whole file.
  static let file = Record(
    name: "file", title: "a scenario",
    keys: [
      Key(name: "scenario", shape: .text(), isRequired: true, about: "The name."),
      Key(
        name: "schema", shape: .integer(1...schemaVersion), isRequired: true,
        about: "The version of this grammar."),
      Key(name: "description", shape: .text(), about: "The purpose."),
      Key(name: "sources", shape: .oneOrMany(.text()), about: "The documents that promise it."),
      Key(name: "device", shape: .record(device), isRequired: true, about: "The device."),
      Key(
        name: "versions", shape: .oneOrMany(.text()),
        about: "The versions of the platform (default: now)."),
      Key(name: "steps", shape: .list(.record(step)), isRequired: true, about: "The steps."),
    ])

  private static let device = Record(
    name: "device", title: "the device",
    keys: [
      Key(name: "sample", shape: .integer(0...10_000), about: "The day of the sample device."),
      Key(name: "root", shape: .text(), about: "A directory, which is copied."),
      Key(name: "layout", shape: .choice(Layout.self), about: "The layout (default: detect it)."),
    ], needsOneOf: ["sample", "root"])

  /// The operations and changes, also in `interrupt`.
  private static let actions: [Key] = [
    Key(name: "deliver", shape: .record(delivery), about: "Delivers a document to an app."),
    Key(name: "write", shape: .record(write), about: "Writes a file."),
    Key(name: "remove", shape: .text(), about: "Removes a file or directory."),
    Key(name: "mark", shape: .record(mark), about: "Sets or removes a mark."),
    Key(name: "backup", shape: .record(backup), about: "Makes a backup."),
    Key(name: "update", shape: .record(update), about: "Updates an app."),
    Key(name: "rollback", shape: .record(rollback), about: "Rolls an app back."),
    Key(name: "purge", shape: .record(purge), about: "Deletes caches."),
    Key(name: "offload", shape: .record(offload), about: "Removes an app's bundle."),
    Key(name: "restore", shape: .record(restore), about: "Restores a backup."),
  ]

  private static let interrupted = Record(
    name: "interrupted", title: "an interrupted step",
    keys: actions.filter { !["write", "remove", "mark"].contains($0.name) },
    needsOneOf: ScenarioAction.Kind.interruptible.map(\.rawValue))

  private static let interrupt = Record(
    name: "interrupt", title: "an interruption",
    keys: [
      Key(name: "step", shape: .record(interrupted), isRequired: true, about: "The operation."),
      Key(
        name: "at", shape: .integer(1...ScenarioAction.Interruption.maximumCount), isRequired: true,
        about: "The number of the phase or call."),
      Key(
        name: "of", shape: .choice(ScenarioAction.Interruption.Unit.self),
        about: "The unit (default: phase); a purge has only calls."),
      Key(name: "recover", shape: .bool, about: "Whether a recovery follows (default: true)."),
    ])

  private static let step = Record(
    name: "step", title: "a step",
    keys: actions + [
      Key(name: "interrupt", shape: .record(interrupt), about: "Ends an operation early."),
      Key(name: "recover", shape: .bool, about: "Recovers interrupted operations."),
      Key(name: "moment", shape: .text(), about: "Names the current state."),
      Key(name: "expect", shape: .list(.record(expectation)), about: "States expectations."),
      Key(name: "versions", shape: .versions, about: "The versions to which it applies."),
      Key(name: "fails", shape: .choice(ErrorCodes.all), about: "The error it has to end with."),
    ], needsOneOf: ScenarioAction.Kind.allCases.map(\.rawValue))

  private static let content: [Key] = [
    Key(name: "text", shape: .text(mayBeEmpty: true), about: "The content."),
    Key(name: "size", shape: .size, about: "The size of a content that does not compress."),
    Key(name: "file", shape: .text(), about: "The file to copy."),
  ]
  private static let contents = content.map(\.name)
  private static let app = Key(name: "app", shape: .text(), isRequired: true, about: "The app.")
  private static let path = Key(
    name: "path", shape: .text(), isRequired: true, about: "The logical path.")

  private static let delivery = Record(
    name: "deliver", title: "a delivery",
    keys: [app, Key(name: "name", shape: .text(), about: "The file's name.")] + content,
    needsOneOf: contents)
  private static let write = Record(
    name: "write", title: "a written file",
    keys: [path, Key(name: "mode", shape: .text(), about: "The permissions in octal.")] + content,
    needsOneOf: contents)
  private static let mark = Record(
    name: "mark", title: "a mark",
    keys: [
      path,
      Key(
        name: "as", shape: .choice(["exclude", "include"]), about: "The mark (default: exclude)."),
      Key(name: "attribute", shape: .text(), about: "The attribute (default: the platform's)."),
    ])
  private static let backup = Record(
    name: "backup", title: "a backup",
    keys: [
      Key(name: "name", shape: .text(), about: "The name of the snapshot."),
      Key(
        name: "as", shape: .choice(Verdicts.View.self),
        about: "Whose backup it is (default: platform)."),
    ])
  private static let update = Record(
    name: "update", title: "an update",
    keys: [
      app, Key(name: "version", shape: .text(), about: "The new version."),
      Key(name: "package", shape: .text(), about: "The package."),
      Key(name: "strict", shape: .bool, about: "Whether unguaranteed data is dropped."),
    ], needsOneOf: ["version", "package"])
  private static let rollback = Record(
    name: "rollback", title: "a rollback",
    keys: [
      app,
      Key(
        name: "data", shape: .choice(ScenarioAction.Rollback.Data.self), about: "The data to keep."),
    ])
  private static let purge = Record(
    name: "purge", title: "a purge",
    keys: [
      Key(name: "level", shape: .choice(Pressure.Level.self), about: "The pressure level."),
      Key(name: "free", shape: .size, about: "The bytes to free."),
    ], needsOneOf: ["level", "free"])
  private static let offload = Record(name: "offload", title: "an offload", keys: [app])
  private static let restore = Record(
    name: "restore", title: "a restore",
    keys: [
      Key(
        name: "to", shape: .choice(ScenarioAction.Restore.Target.self), isRequired: true,
        about: "The target."),
      Key(name: "snapshot", shape: .text(), about: "The name of a backup (default: the last)."),
      Key(name: "app", shape: .text(), about: "The app (default: all)."),
    ])

  private static let verdict = Record(
    name: "verdict", title: "a verdict",
    keys: [
      Key(name: "class", shape: .choice(DataClass.self), about: "The class."),
      Key(name: "backup", shape: .choice(BackupDisposition.Mode.self), about: "The backup."),
      Key(name: "update", shape: .choice(UpdateDisposition.self), about: "The update."),
      Key(
        name: "purge", shape: .choice(ScenarioExpectation.Values.Purge.self), about: "The purge."),
      Key(name: "restore", shape: .choice(RestoreDisposition.self), about: "The restore."),
    ], needsAnyOf: ["class", "backup", "update", "purge", "restore"])

  static let assertions = [
    "exists", "same-bytes", "survived", "vanished", "class", "keep", "platform", "mark",
  ]

  private static let expectation = Record(
    name: "expectation", title: "an expectation",
    keys: [
      Key(
        name: "match", shape: .oneOrMany(.pattern), isRequired: true,
        about: "The patterns of logical paths."),
      Key(name: "except", shape: .oneOrMany(.pattern), about: "The patterns to skip."),
      Key(name: "exists", shape: .bool, about: "Whether an entry exists."),
      Key(name: "same-bytes", shape: .text(), about: "The moment with the same bytes."),
      Key(name: "survived", shape: .text(), about: "The moment whose entries all exist."),
      Key(name: "vanished", shape: .text(), about: "The moment whose entries are all gone."),
      Key(name: "class", shape: .choice(DataClass.self), about: "The class."),
      Key(name: "keep", shape: .record(verdict), about: "This program's verdict."),
      Key(name: "platform", shape: .record(verdict), about: "The platform's verdict."),
      Key(
        name: "mark", shape: .text(),
        about: "'excluded' for any mark, 'none', or the name of an attribute."),
      Key(name: "versions", shape: .versions, about: "The versions to which it applies."),
    ], needsAnyOf: assertions)
}
