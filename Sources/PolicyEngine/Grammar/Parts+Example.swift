internal import SandboxModel

extension Parts {
  static let exampleInput = [
    Record.Key(
      name: "in", shape: .choice(ContainerKind.self), isRequired: true,
      about: "The kind of container."),
    Record.Key(
      name: "path", shape: .text(mayBeEmpty: true), isRequired: true,
      about: "The path below the container's root; empty for the root."),
    Record.Key(name: "app", shape: .text(), about: "The app that owns the container."),
    Record.Key(name: "group", shape: .text(), about: "The group that owns the container."),
    Record.Key(
      name: "type", shape: .choice(EntryType.self),
      about: "The type of the entry (default: file)."),
    Record.Key(name: "size", shape: .size, about: "The size."),
    Record.Key(name: "age", shape: .duration, about: "The time since the last change."),
    Record.Key(
      name: "marked", shape: .keyed(by: .names("path"), .oneOrMany(.identifier)),
      about: "The marks on the entry or on its parent directories."),
    Record.Key(
      name: "holds", shape: .keyed(by: .names("path"), .oneOrMany(.text())),
      about: "The sibling names in the parent directories."),
    Record.Key(
      name: "os-version", shape: .version, about: "The OS version (default: the newest)."),
    Record.Key(
      name: "for", shape: .choice(["local", "cloud", "unencrypted"]),
      about: "The destination of the backup, for which `backup` is checked."),
    Record.Key(name: "why", shape: .text(), about: "The purpose of the example."),
  ]

  static let exampleValues = [
    Record.Key(name: "backup", shape: backup, about: "Whether the data is backed up."),
    Record.Key(
      name: "update", shape: .choice(UpdateDisposition.self),
      about: "The handling of the data on update."),
    Record.Key(
      name: "purge",
      shape: .either(
        .choice(["never", "anytime"]),
        .record(
          Record(
            name: "expected-terms", title: "a purge's terms", keys: termKeys(needsOrder: false)))),
      about: "Whether the data may be purged, and the terms to check."),
    Record.Key(
      name: "restore", shape: .choice(RestoreDisposition.self),
      about: "The handling of the data on restore."),
  ]

  static let examplePlatform = Record(
    name: "expected-platform", title: "the platform's verdict",
    keys: [dataClass] + exampleValues, needsAnyOf: ["class"] + exampleValues.map(\.name))
}
