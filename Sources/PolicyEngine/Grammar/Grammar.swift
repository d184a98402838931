internal import SandboxModel

/// The grammar of policy files: all keys and values.
enum Grammar {
  /// The version of the grammar that this module reads, `schema:` in the files.
  static let schemaVersion = 1

  /// A whole file.
  static let file = Record(
    name: "file", title: "a policy file",
    keys: [
      Record.Key(
        name: "policy", shape: .identifier,
        about: "The policy's name. A file has either this key or overlay."),
      Record.Key(
        name: "overlay",
        shape: .either(.choice(["all"] + layoutWords), .list(.choice(layoutWords))),
        about: "The layouts whose policies this overlay changes, or all."),
      Record.Key(
        name: "schema", shape: .integer(1...schemaVersion), isRequired: true,
        about: "The version of this grammar."),
      Record.Key(name: "title", shape: .text(), about: "The display name."),
      Record.Key(
        name: "extends", shape: .oneOrMany(.identifier),
        about: "The policies that this one extends, in ascending order of precedence."),
      Record.Key(
        name: "layout", shape: .choice(Layout.allCases.map(\.rawValue)),
        about: "The device layout to which this policy applies."),
      Record.Key(
        name: "classes", shape: .keyed(by: DataClass.self, .record(dispositions)),
        about: "The initial dispositions of each data class."),
      Record.Key(
        name: "containers", shape: .keyed(by: ContainerKind.self, .record(container)),
        about: "The handling of whole containers."),
      Record.Key(
        name: "retain", shape: .keyed(by: RetainedItem.self, .duration),
        about: "The retention time of data that operations set aside."),
      Record.Key(
        name: "rules", shape: .list(.record(rule)),
        about: "The rules that set classes and dispositions; the last value set applies."),
      Record.Key(
        name: "apps", shape: .keyed(by: .names("bundle identifier"), .record(app)),
        about: "Rules for single apps, applied after the general ones."),
      Record.Key(
        name: "groups", shape: .keyed(by: .names("group identifier"), .record(group)),
        about: "Rules for single groups, applied after the general ones, and the groups' members."),
      Record.Key(
        name: "markers", shape: .list(.record(marker)),
        about: "Markers on entries, applied after all rules of the file."),
      Record.Key(
        name: "finally", shape: .record(finally),
        about: "Rules and markers applied after those of every policy that extends this one."),
      Record.Key(
        name: "pressure", shape: .list(.record(pressure)),
        about: "The actions of a purge when space is low, by level."),
      Record.Key(
        name: "quotas", shape: .list(.record(quota)),
        about: "The amount of data that an app may keep before it is purged ahead of others."),
      Record.Key(
        name: "examples", shape: .list(.record(example)),
        about: "The policy's tests."),
    ],
    needsOneOf: ["policy", "overlay"])

  /// The layouts that an overlay can name.
  static var layoutWords: [String] { Layout.allCases.map(\.rawValue) }
}

extension Grammar {
  static let dispositions = Record(
    name: "dispositions", title: "a class's dispositions",
    keys: dispositionKeys + [allowLoss], needsAnyOf: dispositionKeys.map(\.name))

  static let container = Record(
    name: "container", title: "a container's terms",
    keys: [
      Record.Key(
        name: "backup", shape: backup,
        about: "The initial disposition of the container's content."),
      Record.Key(
        name: "update", shape: .choice(ContainerTerms.Update.self),
        about: "The handling of the container on update."),
      Record.Key(
        name: "offload", shape: .choice(ContainerTerms.Offload.self),
        about: "The handling of the container when the app is offloaded."),
      Record.Key(
        name: "uninstall", shape: .choice(ContainerTerms.Uninstall.self),
        about: "The handling of the container when the app is removed."),
      Record.Key(
        name: "restore-missing", shape: .choice(ContainerTerms.RestoreMissing.self),
        about: "The restore target if the app is not installed."),
    ])

  static let rule = Record(
    name: "rule", title: "a rule",
    keys: [
      identifier, kinds,
      Record.Key(
        name: "match", shape: .pattern, isRequired: true,
        about: "The pattern of the paths, relative to the container's root."),
      Record.Key(
        name: "ignore-case", shape: .bool,
        about: "Whether ASCII letters match in either case."),
      dataClass,
    ] + dispositionKeys + [
      protection,
      Record.Key(
        name: "platform", shape: platform, about: "The differences in the platform's verdict."),
      Record.Key(name: "when", shape: .record(conditions), about: "The additional conditions."),
      versions, why, source, allowLoss,
    ], needsAnyOf: ["class"] + dispositionKeys.map(\.name) + ["protection", "platform"])

  static let conditions = Record(
    name: "conditions", title: "a rule's conditions",
    keys: [
      Record.Key(name: "larger-than", shape: .size, about: "The size that the file must exceed."),
      Record.Key(
        name: "type", shape: .oneOrMany(.choice(EntryType.self)),
        about: "The type of the entry; a database is also a file."),
      Record.Key(
        name: "sibling", shape: .oneOrMany(.text()),
        about:
          "The names of which one must exist next to the entry named before `/**`; `NAME/` is a "
          + "directory."),
      Record.Key(
        name: "older-than", shape: .duration,
        about: "The minimum age of the last change; only in rules that set purge alone."),
      Record.Key(
        name: "newer-than", shape: .duration,
        about: "The maximum age of the last change; only in rules that set purge alone."),
    ], needsAnyOf: ["larger-than", "type", "sibling", "older-than", "newer-than"])

  static let marker = Record(
    name: "marker", title: "a marker",
    keys: [
      identifier, kinds,
      Record.Key(
        name: "xattr", shape: .text(),
        about: "The extended attribute; on Linux, its name is prefixed with `user.`."),
      Record.Key(
        name: "value", shape: .text(mayBeEmpty: true),
        about: "The required value of the attribute (default: any)."),
      Record.Key(
        name: "file", shape: .text(), about: "The name of a file that marks its directory."),
      Record.Key(
        name: "begins-with", shape: .text(), about: "The required first bytes of the file."),
      Record.Key(
        name: "inherit", shape: .choice(["directory"]),
        about: "A marked directory covers everything below it."),
      Record.Key(
        name: "then", shape: .record(effect), isRequired: true,
        about:
          "The values to set: backup and restore anywhere, class and purge only on caches."
      ),
      versions, why, source,
    ], needsOneOf: ["xattr", "file"])

  static let effect = Record(
    name: "effect", title: "a marker's effect",
    keys: [
      dataClass,
      Record.Key(name: "backup", shape: backup, about: "Whether the data is backed up."),
      Record.Key(name: "purge", shape: purge, about: "Whether the data may be purged."),
      Record.Key(
        name: "restore", shape: .choice(RestoreDisposition.self),
        about: "The handling of the data on restore."),
      Record.Key(
        name: "platform", shape: .choice(["unchanged"]),
        about: "The platform itself ignores the marker."),
    ], needsAnyOf: ["class", "backup", "purge", "restore"])

  static let finally = Record(
    name: "finally", title: "the 'finally' section",
    keys: [
      Record.Key(name: "rules", shape: .list(.record(rule)), about: "The rules."),
      Record.Key(name: "markers", shape: .list(.record(marker)), about: "The markers."),
    ], needsAnyOf: ["rules", "markers"])

  static let app = Record(
    name: "app", title: "an app's section",
    keys: [
      Record.Key(
        name: "rules", shape: .list(.record(rule)), isRequired: true,
        about: "Rules for this app's containers.")
    ])

  static let group = Record(
    name: "group", title: "a group's section",
    keys: [
      Record.Key(name: "rules", shape: .list(.record(rule)), about: "Rules for this group."),
      Record.Key(
        name: "members", shape: .list(.text()),
        about: "The bundle identifiers of all apps that share the group."),
    ], needsAnyOf: ["rules", "members"])
}

/// The form of a value in a policy file. The grammar check and the JSON Schema both derive from it
/// and therefore agree.
package indirect enum Shape: Sendable {
  /// Text, which is empty only if permitted.
  case text(mayBeEmpty: Bool = false)
  /// A name of letters, digits, dots, hyphens and underscores.
  case identifier
  /// A pattern of paths.
  case pattern
  case bool
  case integer(ClosedRange<Int>)
  /// Bytes with a unit.
  case size
  /// A duration with a unit.
  case duration
  /// A version of an operating system.
  case version
  /// A range of versions.
  case versions
  /// One of several words.
  case choice([String])
  /// A list.
  case list(Shape)
  /// One value or a list of them.
  case oneOrMany(Shape)
  /// A mapping of fixed keys.
  case record(Record)
  /// A mapping whose keys are names or fixed words.
  case keyed(by: Keys, Shape)
  /// A word or a number in one form, a mapping in another.
  case either(Shape, Shape)

  /// The keys of a mapping.
  package enum Keys: Sendable {
    case words([String])
    /// Any text; the associated value names the kind of key in the singular.
    case names(String)
  }

  /// Returns the shape of one of the words of a type.
  package static func choice<Value: RawRepresentable & CaseIterable>(
    _: Value.Type
  ) -> Shape where Value.RawValue == String {
    .choice(Value.allCases.map(\.rawValue))
  }

  /// Returns the shape of a mapping by the words of a type.
  package static func keyed<Value: RawRepresentable & CaseIterable>(
    by _: Value.Type, _ shape: Shape
  ) -> Shape where Value.RawValue == String {
    .keyed(by: .words(Value.allCases.map(\.rawValue)), shape)
  }
}

/// A mapping of fixed keys.
package struct Record: Sendable {
  /// Its name in the JSON Schema.
  package let name: String
  /// The name in messages, with its article: "a rule".
  package let title: String
  /// The permitted keys.
  package let keys: [Key]
  /// The keys of which at least one is required.
  package let needsAnyOf: [String]
  /// The keys of which exactly one is required.
  package let needsOneOf: [String]

  /// Creates a record.
  package init(
    name: String, title: String, keys: [Key], needsAnyOf: [String] = [], needsOneOf: [String] = []
  ) {
    self.name = name
    self.title = title
    self.keys = keys
    self.needsAnyOf = needsAnyOf
    self.needsOneOf = needsOneOf
  }

  /// A key with the shape of its value.
  package struct Key: Sendable {
    /// The key.
    package let name: String
    /// The shape of the value.
    package let shape: Shape
    /// Whether every such mapping has the key.
    package let isRequired: Bool
    /// The description for editors.
    package let about: String

    /// Creates a key.
    package init(name: String, shape: Shape, isRequired: Bool = false, about: String) {
      self.name = name
      self.shape = shape
      self.isRequired = isRequired
      self.about = about
    }
  }

  func key(_ name: String) -> Key? { keys.first { $0.name == name } }
}

extension Shape {
  /// The expected value in messages.
  var expectation: String {
    switch self {
    case .text: "text"
    case .identifier: "a name of letters, digits, '.', '-' and '_'"
    case .pattern: "a pattern"
    case .bool: "true or false"
    case .integer(let range) where range.count == 1: "\(range.lowerBound)"
    case .integer(let range): "a number from \(range.lowerBound) to \(range.upperBound)"
    case .size: "a size such as 512MiB"
    case .duration: "a duration such as 30d, 12h, 15m or 45s"
    case .version: "a version such as 5.0.1"
    case .versions: "versions such as \">=5.1\" or \"5.0.1..<6\""
    case .choice(let words): words.count == 1 ? words[0] : "one of \(words.joined(separator: ", "))"
    case .list(let shape): "a list, each element \(shape.expectation)"
    case .oneOrMany(let shape): "\(shape.expectation), or a list of them"
    case .record(let record):
      "a mapping of \(record.keys.map(\.name).joined(separator: ", "))"
    case .keyed(.words(let words), _): "a mapping of \(words.joined(separator: ", "))"
    case .keyed(.names(let name), _): "a mapping by \(name)"
    case .either(let first, let second): "\(first.expectation), or \(second.expectation)"
    }
  }
}
