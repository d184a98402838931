internal import SandboxModel

/// The grammar of policy files: all keys and values.
enum Grammar {
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
        name: "schema", shape: .integer(1...PolicyFormat.schemaVersion), isRequired: true,
        about: "The version of this grammar."),
      Record.Key(name: "title", shape: .text(), about: "The display name."),
      Record.Key(
        name: "extends", shape: .oneOrMany(.identifier),
        about: "The policies that this one extends, in ascending order of precedence."),
      Record.Key(
        name: "layout", shape: .choice(Layout.allCases.map(\.rawValue)),
        about: "The device layout to which this policy applies."),
      Record.Key(
        name: "classes", shape: .keyed(by: DataClass.self, .record(Parts.dispositions)),
        about: "The initial dispositions of each data class."),
      Record.Key(
        name: "containers", shape: .keyed(by: ContainerKind.self, .record(Parts.container)),
        about: "The handling of whole containers."),
      Record.Key(
        name: "retain", shape: .keyed(by: RetainedItem.self, .duration),
        about: "The retention time of data that operations set aside."),
      Record.Key(
        name: "rules", shape: .list(.record(Parts.rule)),
        about: "The rules that set classes and dispositions; the last value set applies."),
      Record.Key(
        name: "apps", shape: .keyed(by: .names("bundle identifier"), .record(Parts.app)),
        about: "Rules for single apps, applied after the general ones."),
      Record.Key(
        name: "groups", shape: .keyed(by: .names("group identifier"), .record(Parts.group)),
        about: "Rules for single groups, applied after the general ones, and the groups' members."),
      Record.Key(
        name: "markers", shape: .list(.record(Parts.marker)),
        about: "Markers on entries, applied after all rules of the file."),
      Record.Key(
        name: "finally", shape: .record(Parts.finally),
        about: "Rules and markers applied after those of every policy that extends this one."),
      Record.Key(
        name: "pressure", shape: .list(.record(Parts.pressure)),
        about: "The actions of a purge when space is low, by level."),
      Record.Key(
        name: "quotas", shape: .list(.record(Parts.quota)),
        about: "The amount of data that an app may keep before it is purged ahead of others."),
      Record.Key(
        name: "examples", shape: .list(.record(Parts.example)),
        about: "The policy's tests."),
    ],
    needsOneOf: ["policy", "overlay"])

  /// The layouts that an overlay can name.
  static var layoutWords: [String] { Layout.allCases.map(\.rawValue) }
}
