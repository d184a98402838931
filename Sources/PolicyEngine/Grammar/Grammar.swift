internal import SandboxModel

/// The grammar of policy files: every key and every value that there is.
enum Grammar {
  /// A whole file.
  static let file = Record(
    name: "file", title: "a policy file",
    keys: [
      Record.Key(
        name: "policy", shape: .identifier,
        about: "The policy's name; a file has this or overlay."),
      Record.Key(
        name: "overlay",
        shape: .either(.choice(["all"] + layoutWords), .list(.choice(layoutWords))),
        about: "The layouts whose policies this file lies over, or all."),
      Record.Key(
        name: "schema", shape: .integer(1...PolicyFormat.schemaVersion), isRequired: true,
        about: "The version of this grammar."),
      Record.Key(name: "title", shape: .text(), about: "What people call it."),
      Record.Key(
        name: "extends", shape: .oneOrMany(.identifier),
        about: "The policies that this one builds upon, the weakest first."),
      Record.Key(
        name: "layout", shape: .choice(Layout.allCases.map(\.rawValue)),
        about: "The layout of devices that this policy is for."),
      Record.Key(
        name: "classes", shape: .keyed(by: DataClass.self, .record(Parts.dispositions)),
        about: "The dispositions that each data class starts from."),
      Record.Key(
        name: "containers", shape: .keyed(by: ContainerKind.self, .record(Parts.container)),
        about: "What happens to whole containers."),
      Record.Key(
        name: "retain", shape: .keyed(by: RetainedItem.self, .duration),
        about: "How long what operations put aside is kept."),
      Record.Key(
        name: "rules", shape: .list(.record(Parts.rule)),
        about: "What data is and what becomes of it; the last value set holds."),
      Record.Key(
        name: "apps", shape: .keyed(by: .names("bundle identifier"), .record(Parts.app)),
        about: "Rules for single apps, behind the others."),
      Record.Key(
        name: "groups", shape: .keyed(by: .names("group identifier"), .record(Parts.group)),
        about: "Rules for single groups, behind the others, and which apps share them."),
      Record.Key(
        name: "markers", shape: .list(.record(Parts.marker)),
        about: "Marks on entries, behind all rules of the file."),
      Record.Key(
        name: "finally", shape: .record(Parts.finally),
        about: "Rules and marks that stand behind those of every policy that extends this one."),
      Record.Key(
        name: "pressure", shape: .list(.record(Parts.pressure)),
        about: "What a purge does when space is short, by level."),
      Record.Key(
        name: "quotas", shape: .list(.record(Parts.quota)),
        about: "How much an app may have before its data is purged ahead of others'."),
      Record.Key(
        name: "examples", shape: .list(.record(Parts.example)),
        about: "The policy's own tests."),
    ],
    needsOneOf: ["policy", "overlay"])

  /// The layouts that an overlay may name.
  static var layoutWords: [String] { Layout.allCases.map(\.rawValue) }
}
