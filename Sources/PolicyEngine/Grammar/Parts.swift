internal import SandboxModel

/// The mappings in a policy file.
enum Parts {
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
      Record.Key(
        name: "platform", shape: platform, about: "The differences in the platform's verdict."),
      Record.Key(name: "when", shape: .record(conditions), about: "The additional conditions."),
      versions, why, source, allowLoss,
    ], needsAnyOf: ["class"] + dispositionKeys.map(\.name) + ["platform"])

  static let conditions = Record(
    name: "conditions", title: "a rule's conditions",
    keys: [
      Record.Key(name: "larger-than", shape: .size, about: "The size that the file must exceed."),
      Record.Key(
        name: "type", shape: .oneOrMany(.choice(EntryType.self)),
        about: "The type of the entry; a database is also a file."),
      Record.Key(
        name: "sibling", shape: .oneOrMany(.text()),
        about: "The names of which one must exist beside the entry named before `/**`."),
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
