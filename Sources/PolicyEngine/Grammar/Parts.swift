internal import SandboxModel

/// The mappings of which a policy file is made.
enum Parts {
  static let dispositions = Record(
    name: "dispositions", title: "a class's dispositions",
    keys: dispositionKeys + [allowLoss], needsAnyOf: dispositionKeys.map(\.name))

  static let container = Record(
    name: "container", title: "a container's terms",
    keys: [
      Record.Key(
        name: "backup", shape: backup, about: "What the verdict of all that it holds starts from."),
      Record.Key(
        name: "update", shape: .choice(ContainerTerms.Update.self),
        about: "What an update does with it."),
      Record.Key(
        name: "offload", shape: .choice(ContainerTerms.Offload.self),
        about: "What becomes of it when the app is offloaded."),
      Record.Key(
        name: "uninstall", shape: .choice(ContainerTerms.Uninstall.self),
        about: "What becomes of it when the app is removed."),
      Record.Key(
        name: "restore-missing", shape: .choice(ContainerTerms.RestoreMissing.self),
        about: "Where its data goes when the app is not there."),
    ])

  static let rule = Record(
    name: "rule", title: "a rule",
    keys: [
      identifier, kinds,
      Record.Key(
        name: "match", shape: .pattern, isRequired: true,
        about: "The paths that it means, relative to the container's root."),
      Record.Key(
        name: "ignore-case", shape: .bool,
        about: "Whether letters of ASCII match in either case."),
      dataClass,
    ] + dispositionKeys + [
      Record.Key(name: "platform", shape: platform, about: "Where the platform's verdict differs."),
      Record.Key(name: "when", shape: .record(conditions), about: "What must hold besides."),
      versions, why, source, allowLoss,
    ], needsAnyOf: ["class"] + dispositionKeys.map(\.name) + ["platform"])

  static let conditions = Record(
    name: "conditions", title: "a rule's conditions",
    keys: [
      Record.Key(name: "larger-than", shape: .size, about: "A file of more bytes than this."),
      Record.Key(
        name: "type", shape: .oneOrMany(.choice(EntryType.self)),
        about: "What the entry is; a database is a file, too."),
      Record.Key(
        name: "sibling", shape: .oneOrMany(.text()),
        about: "A name, or one of some, that lies beside what the pattern names before `/**`."),
      Record.Key(
        name: "older-than", shape: .duration,
        about: "Last changed longer ago; only in rules that set purge and nothing else."),
      Record.Key(
        name: "newer-than", shape: .duration,
        about: "Last changed less long ago; only in rules that set purge and nothing else."),
    ], needsAnyOf: ["larger-than", "type", "sibling", "older-than", "newer-than"])

  static let marker = Record(
    name: "marker", title: "a marker",
    keys: [
      identifier, kinds,
      Record.Key(
        name: "xattr", shape: .text(),
        about: "The extended attribute that marks; on Linux, `user.` goes before its name."),
      Record.Key(
        name: "value", shape: .text(mayBeEmpty: true),
        about: "The value that the attribute must have; any without it."),
      Record.Key(
        name: "file", shape: .text(), about: "The file that marks the directory it lies in."),
      Record.Key(
        name: "begins-with", shape: .text(), about: "The bytes that the file must begin with."),
      Record.Key(
        name: "inherit", shape: .choice(["directory"]),
        about: "A marked directory covers all below it."),
      Record.Key(
        name: "then", shape: .record(effect), isRequired: true,
        about:
          "What it sets: backup and restore; class and purge only where the rules gave a cache."
      ),
      versions, why, source,
    ], needsOneOf: ["xattr", "file"])

  static let effect = Record(
    name: "effect", title: "what a marker does",
    keys: [
      dataClass,
      Record.Key(name: "backup", shape: backup, about: "Whether it goes into a backup."),
      Record.Key(name: "purge", shape: purge, about: "Whether it may be purged."),
      Record.Key(
        name: "restore", shape: .choice(RestoreDisposition.self),
        about: "What a restore does with it."),
      Record.Key(
        name: "platform", shape: .choice(["unchanged"]),
        about: "The platform itself does not heed the mark."),
    ], needsAnyOf: ["class", "backup", "purge", "restore"])

  static let finally = Record(
    name: "finally", title: "the last part",
    keys: [
      Record.Key(name: "rules", shape: .list(.record(rule)), about: "Rules."),
      Record.Key(name: "markers", shape: .list(.record(marker)), about: "Marks."),
    ], needsAnyOf: ["rules", "markers"])

  static let app = Record(
    name: "app", title: "an app's part",
    keys: [
      Record.Key(
        name: "rules", shape: .list(.record(rule)), isRequired: true,
        about: "Rules for this app's containers.")
    ])

  static let group = Record(
    name: "group", title: "a group's part",
    keys: [
      Record.Key(name: "rules", shape: .list(.record(rule)), about: "Rules for this group."),
      Record.Key(
        name: "members", shape: .list(.text()),
        about: "The bundle identifiers of all apps that share it."),
    ], needsAnyOf: ["rules", "members"])
}
