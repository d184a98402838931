internal import SandboxModel

extension Parts {
  static let identifier = Record.Key(
    name: "id", shape: .identifier, isRequired: true, about: "Its name, once in the file.")

  static let kinds = Record.Key(
    name: "in", shape: .oneOrMany(.choice(ContainerKind.self)),
    about: "The kinds of containers in which it counts.")

  static let dataClass = Record.Key(
    name: "class", shape: .choice(DataClass.self),
    about: "What the data is; the values start again from this class's.")

  static let versions = Record.Key(
    name: "versions", shape: .versions,
    about: "The versions of the operating system for which it counts.")

  static let why = Record.Key(name: "why", shape: .text(), about: "Why it is so.")

  static let source = Record.Key(name: "source", shape: .text(), about: "Who says so.")

  static let allowLoss = Record.Key(
    name: "allow-loss", shape: .text(),
    about: "Why it may let go what nobody can make again.")

  static let dispositionKeys = [
    Record.Key(name: "backup", shape: backup, about: "Whether it goes into a backup."),
    Record.Key(
      name: "update", shape: .choice(UpdateDisposition.self),
      about: "What becomes of it when the app is updated."),
    Record.Key(name: "purge", shape: purge, about: "Whether it may be purged."),
    Record.Key(
      name: "restore", shape: .choice(RestoreDisposition.self),
      about: "What a restore does with it."),
  ]

  static let backup = Shape.either(.choice(BackupMode.self), .record(destinations))

  static let destinations = Record(
    name: "destinations", title: "a backup by destination",
    keys: [
      Record.Key(
        name: "default", shape: .choice(BackupMode.self),
        about: "For every destination; without it, what was said before stays."),
      Record.Key(
        name: "cloud", shape: .choice(BackupMode.self),
        about: "For a repository in a cloud, where it is more restrictive."),
      Record.Key(
        name: "unencrypted", shape: .choice(BackupMode.self),
        about: "For a repository that is not encrypted, where it is more restrictive."),
    ], needsAnyOf: ["default", "cloud", "unencrypted"])

  static let purge = Shape.either(.choice(["never", "anytime"]), .record(terms))

  static let terms = Record(
    name: "purge-terms", title: "a purge's terms", keys: termKeys(needsOrder: true))

  static func termKeys(needsOrder: Bool) -> [Record.Key] {
    [
      Record.Key(
        name: "order", shape: .integer(0...Int(PurgeTerms.maximumOrder)), isRequired: needsOrder,
        about: "The turn in which it goes, lower ones first."),
      Record.Key(
        name: "when", shape: .choice(PurgeTerms.Moment.self),
        about: "When it may go; under-pressure unless this says otherwise."),
      Record.Key(
        name: "unit", shape: .choice(PurgeTerms.Unit.self), about: "What goes together; a file."),
      Record.Key(
        name: "action", shape: .choice(PurgeTerms.Action.self), about: "How it goes; unlinked."),
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
        about: "Hundredths of the volume."),
      Record.Key(name: "at-most", shape: .size, about: "But never more than this."),
    ])

  static let pressure = Record(
    name: "pressure", title: "a level of pressure",
    keys: [
      Record.Key(
        name: "level", shape: .choice(PressureLevel.self), isRequired: true, about: "Its name."),
      Record.Key(
        name: "when-free-below", shape: .record(freeSpace), isRequired: true,
        about: "It holds when less is free."),
      Record.Key(
        name: "reclaim-to", shape: .record(freeSpace), isRequired: true,
        about: "A purge ends when this is free."),
      Record.Key(
        name: "orders", shape: .list(.integer(0...Int(PurgeTerms.maximumOrder))), isRequired: true,
        about: "The purge orders that take part."),
      Record.Key(
        name: "min-age", shape: .duration, isRequired: true,
        about: "How long data must have been unused."),
    ])

  static let quota = Record(
    name: "quota", title: "a quota",
    keys: [
      Record.Key(name: "match", shape: .pattern, isRequired: true, about: "The paths that count."),
      kinds,
      Record.Key(name: "per", shape: .choice(["app"]), isRequired: true, about: "Whose it is."),
      Record.Key(name: "size", shape: .size, isRequired: true, about: "How much."),
    ])

  static let example = Record(
    name: "example", title: "an example",
    keys: exampleInput + [dataClass] + exampleValues + [
      Record.Key(
        name: "platform", shape: .record(examplePlatform),
        about: "What must come out for the platform.")
    ], needsAnyOf: ["class"] + exampleValues.map(\.name) + ["platform"])
}
