internal import SandboxModel

extension Parts {
  static let identifier = Record.Key(
    name: "id", shape: .identifier, isRequired: true, about: "The identifier, unique in the file.")

  static let kinds = Record.Key(
    name: "in", shape: .oneOrMany(.choice(ContainerKind.self)),
    about: "The container kinds to which it applies.")

  static let dataClass = Record.Key(
    name: "class", shape: .choice(DataClass.self),
    about: "The data class; its dispositions replace all values set before.")

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

  static let backup = Shape.either(.choice(BackupMode.self), .record(destinations))

  static let destinations = Record(
    name: "destinations", title: "a backup by destination",
    keys: [
      Record.Key(
        name: "default", shape: .choice(BackupMode.self),
        about: "The mode for every destination (default: unchanged)."),
      Record.Key(
        name: "cloud", shape: .choice(BackupMode.self),
        about: "An additional restriction for repositories in a cloud."),
      Record.Key(
        name: "unencrypted", shape: .choice(BackupMode.self),
        about: "An additional restriction for unencrypted repositories."),
    ], needsAnyOf: ["default", "cloud", "unencrypted"])

  static let purge = Shape.either(.choice(["never", "anytime"]), .record(terms))

  static let terms = Record(
    name: "purge-terms", title: "a purge's terms", keys: termKeys(needsOrder: true))

  static func termKeys(needsOrder: Bool) -> [Record.Key] {
    [
      Record.Key(
        name: "order", shape: .integer(0...Int(PurgeTerms.maximumOrder)), isRequired: needsOrder,
        about: "The purge order; lower numbers are deleted first."),
      Record.Key(
        name: "when", shape: .choice(PurgeTerms.Moment.self),
        about: "The time at which the data may be deleted (default: under-pressure)."),
      Record.Key(
        name: "unit", shape: .choice(PurgeTerms.Unit.self),
        about: "The unit of deletion (default: file)."),
      Record.Key(
        name: "action", shape: .choice(PurgeTerms.Action.self),
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
        name: "level", shape: .choice(PressureLevel.self), isRequired: true, about: "The name."),
      Record.Key(
        name: "when-free-below", shape: .record(freeSpace), isRequired: true,
        about: "The amount of free space below which the level applies."),
      Record.Key(
        name: "reclaim-to", shape: .record(freeSpace), isRequired: true,
        about: "The amount of free space at which a purge ends."),
      Record.Key(
        name: "orders", shape: .list(.integer(0...Int(PurgeTerms.maximumOrder))), isRequired: true,
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
      Record.Key(
        name: "platform", shape: .record(examplePlatform),
        about: "The expected values for the platform.")
    ], needsAnyOf: ["class"] + exampleValues.map(\.name) + ["platform"])
}
