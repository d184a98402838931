internal import SandboxModel

extension Grammar {
  static let identifier = Record.Key(
    name: "id", shape: .identifier, isRequired: true, about: "The identifier, unique in the file.")

  static let kinds = Record.Key(
    name: "in", shape: .oneOrMany(.choice(ContainerKind.self)),
    about: "The container kinds to which it applies.")

  static let dataClass = Record.Key(
    name: "class", shape: .choice(DataClass.self),
    about: "The data class; its dispositions replace all values set before.")

  static let protection = Record.Key(
    name: "protection", shape: .choice(ProtectionClass.self),
    about: "The class of data protection, unless a file's metadata says another one.")

  static let versions = Record.Key(
    name: "versions", shape: .versions,
    about: "The OS versions to which it applies.")

  static let why = Record.Key(name: "why", shape: .text(), about: "The reason.")

  static let source = Record.Key(name: "source", shape: .text(), about: "The reference.")

  static let allowLoss = Record.Key(
    name: "allow-loss", shape: .text(),
    about: "The reason for permitting the loss of precious data.")

  static let dispositionKeys = [
    Record.Key(name: "backup", shape: backup, about: "Whether the data is backed up."),
    Record.Key(
      name: "update", shape: .choice(UpdateDisposition.self),
      about: "The handling of the data on update."),
    Record.Key(name: "purge", shape: purge, about: "Whether the data may be purged."),
    Record.Key(
      name: "restore", shape: .choice(RestoreDisposition.self),
      about: "The handling of the data on restore."),
  ]

  static let backup = Shape.either(.choice(BackupDisposition.Mode.self), .record(destinations))

  static let destinations = Record(
    name: "destinations", title: "a backup by destination",
    keys: [
      Record.Key(
        name: "default", shape: .choice(BackupDisposition.Mode.self),
        about: "The mode for every destination (default: unchanged)."),
      Record.Key(
        name: "cloud", shape: .choice(BackupDisposition.Mode.self),
        about: "An additional restriction for repositories in a cloud."),
      Record.Key(
        name: "unencrypted", shape: .choice(BackupDisposition.Mode.self),
        about: "An additional restriction for unencrypted repositories."),
    ], needsAnyOf: ["default", "cloud", "unencrypted"])

  static let purge = Shape.either(.choice(["never", "anytime"]), .record(terms))

  static let terms = Record(
    name: "purge-terms", title: "a purge's terms", keys: termKeys(needsOrder: true))

  static func termKeys(needsOrder: Bool) -> [Record.Key] {
    [
      Record.Key(
        name: "order", shape: .integer(0...Int(PurgeDisposition.Terms.maximumOrder)),
        isRequired: needsOrder,
        about: "The purge order; lower numbers are deleted first."),
      Record.Key(
        name: "when", shape: .choice(PurgeDisposition.Terms.Moment.self),
        about: "The time at which the data may be deleted (default: under-pressure)."),
      Record.Key(
        name: "unit", shape: .choice(PurgeDisposition.Terms.Unit.self),
        about: "The unit of deletion (default: file)."),
      Record.Key(
        name: "action", shape: .choice(PurgeDisposition.Terms.Action.self),
        about: "The method of deletion (default: unlink)."),
    ]
  }

  static let platform = Shape.either(.choice(["unchanged"]), .record(platformValues))

  static let platformValues = Record(
    name: "platform", title: "the platform's verdict",
    keys: [dataClass] + dispositionKeys, needsAnyOf: ["class"] + dispositionKeys.map(\.name))

  static let freeSpace = Record(
    name: "free-space", title: "an amount of free space",
    keys: [
      Record.Key(
        name: "percent", shape: .integer(0...100), isRequired: true,
        about: "The percentage of the volume's size."),
      Record.Key(name: "at-most", shape: .size, about: "The upper limit."),
    ])

  static let pressure = Record(
    name: "pressure", title: "a pressure level",
    keys: [
      Record.Key(
        name: "level", shape: .choice(Pressure.Level.self), isRequired: true, about: "The name."),
      Record.Key(
        name: "when-free-below", shape: .record(freeSpace), isRequired: true,
        about: "The amount of free space below which the level applies."),
      Record.Key(
        name: "reclaim-to", shape: .record(freeSpace), isRequired: true,
        about: "The amount of free space at which a purge ends."),
      Record.Key(
        name: "orders", shape: .list(.integer(0...Int(PurgeDisposition.Terms.maximumOrder))),
        isRequired: true,
        about: "The purge orders included at this level."),
      Record.Key(
        name: "min-age", shape: .duration, isRequired: true,
        about: "The time for which data must have been unused."),
    ])

  static let quota = Record(
    name: "quota", title: "a quota",
    keys: [
      Record.Key(name: "match", shape: .pattern, isRequired: true, about: "The paths to count."),
      kinds,
      Record.Key(name: "per", shape: .choice(["app"]), isRequired: true, about: "The scope."),
      Record.Key(name: "size", shape: .size, isRequired: true, about: "The limit."),
    ])

  static let example = Record(
    name: "example", title: "an example",
    keys: exampleInput + [dataClass] + exampleValues + [
      protection,
      Record.Key(
        name: "platform", shape: .record(examplePlatform),
        about: "The expected values for the platform."),
    ], needsAnyOf: ["class"] + exampleValues.map(\.name) + ["protection", "platform"])

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
