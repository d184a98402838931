internal import SandboxModel

extension Parts {
  static let exampleInput = [
    Record.Key(
      name: "in", shape: .choice(ContainerKind.self), isRequired: true,
      about: "The kind of container."),
    Record.Key(
      name: "path", shape: .text(mayBeEmpty: true), isRequired: true,
      about: "The path below the container's root; empty for the root."),
    Record.Key(name: "app", shape: .text(), about: "The app whose container it is."),
    Record.Key(name: "group", shape: .text(), about: "The group whose container it is."),
    Record.Key(name: "type", shape: .choice(EntryType.self), about: "What the entry is; a file."),
    Record.Key(name: "size", shape: .size, about: "How large it is."),
    Record.Key(name: "age", shape: .duration, about: "How long ago it last changed."),
    Record.Key(
      name: "marked", shape: .keyed(by: .names("path"), .oneOrMany(.identifier)),
      about: "The marks on the entry or on directories above it."),
    Record.Key(
      name: "holds", shape: .keyed(by: .names("path"), .oneOrMany(.text())),
      about: "The names that directories on the way hold."),
    Record.Key(
      name: "os-version", shape: .version, about: "The operating system's version; the newest."),
    Record.Key(
      name: "for", shape: .choice(["local", "cloud", "unencrypted"]),
      about: "Where the backup goes; then `backup` is what holds there."),
    Record.Key(name: "why", shape: .text(), about: "What the example is for."),
  ]

  static let exampleValues = [
    Record.Key(name: "backup", shape: backup, about: "Whether it goes into a backup."),
    Record.Key(
      name: "update", shape: .choice(UpdateDisposition.self),
      about: "What becomes of it when the app is updated."),
    Record.Key(
      name: "purge",
      shape: .either(
        .choice(["never", "anytime"]),
        .record(
          Record(
            name: "expected-terms", title: "a purge's terms", keys: termKeys(needsOrder: false)))),
      about: "Whether it may be purged, and those terms that matter."),
    Record.Key(
      name: "restore", shape: .choice(RestoreDisposition.self),
      about: "What a restore does with it."),
  ]

  static let examplePlatform = Record(
    name: "expected-platform", title: "the platform's verdict",
    keys: [dataClass] + exampleValues, needsAnyOf: ["class"] + exampleValues.map(\.name))
}
