/// A choice that excludes settings of the configuration: options that cannot be used with the
/// chosen ones. The command line, or the more specific part of the configuration, takes precedence.
struct OptionPrecedence: Sendable {
  /// The long names of the options of the choice, or names of arguments.
  let chosen: Set<String>
  /// The long names of the options that are not used if one of `chosen` is given.
  let replaced: Set<String>
  /// The long names of options that the user set for what is replaced and that may destroy other
  /// data: they are dropped together with it.
  var dependent: Set<String> = []
  /// Settings among them, as `NAME=VALUE`, that protect existing data: they stay.
  var protective: Set<String> = []
  /// The options of which one must also be chosen for `protective` to have an effect; empty for no
  /// condition.
  var protectiveBeside: Set<String> = []
  /// Options that must all be chosen, anywhere, for a conditional choice to apply.
  var beside: Set<String> = []
  /// Options of which none may be chosen, anywhere, for a conditional choice to apply.
  var without: Set<String> = []

  /// The name that stands for arguments that are not options.
  static let arguments = "<arguments>"
  /// The names that stand for some arguments: a snapshot beside another argument, a path, and
  /// standard output.
  static let snapshot = "<snapshot>"
  static let path = "<path>"
  static let standardOutput = "<standard output>"
  /// The name that stands for a passphrase that the environment names.
  static let passphraseVariable = "<passphrase variable>"

  /// Returns the choices among options that exclude those of the other side.
  ///
  /// - Parameter dependent: options that are used only for the side for which the configuration
  ///   sets them.
  static func oneOf(
    _ sides: Set<String>..., dropping dependent: Set<String> = []
  ) -> [OptionPrecedence] {
    sides.map { side in
      let others = sides.filter { $0 != side }.reduce(into: Set()) { $0.formUnion($1) }
      return OptionPrecedence(chosen: side, replaced: others, dependent: dependent)
    }
  }

  /// Returns the choice of a target, or of something else that options are set for: a choice in a
  /// more specific place replaces one in a less specific place, even if it is the same option. Its
  /// own options stay.
  static func target(_ names: Set<String>, dropping dependent: Set<String>) -> [OptionPrecedence] {
    [OptionPrecedence(chosen: names, replaced: [], dependent: dependent)]
  }

  /// Returns the choice with settings that stay although their options are dependent.
  ///
  /// - Parameter others: the options of which one must be chosen as well; empty for no condition.
  func protecting(_ settings: Set<String>, beside others: Set<String> = []) -> OptionPrecedence {
    var copy = self
    (copy.protective, copy.protectiveBeside) = (settings, others)
    return copy
  }

  /// Whether a setting with some values, or none if it is a flag, is dropped together with a
  /// replaced setting.
  ///
  /// - Parameter chosen: the options that are chosen in the place of the replacement, or in a more
  ///   specific one.
  func drops(_ name: String, values: [String], chosen others: Set<String>) -> Bool {
    guard dependent.contains(name) else { return false }
    let isProtecting = protectiveBeside.isEmpty || !protectiveBeside.isDisjoint(with: others)
    return !isProtecting || !values.contains { protective.contains("\(name)=\($0)") }
  }

  /// Returns the choice of options that make others meaningless. Those do not replace the choice.
  static func choosing(
    _ chosen: Set<String>, replaces replaced: Set<String>
  ) -> [OptionPrecedence] {
    [OptionPrecedence(chosen: chosen, replaced: replaced)]
  }

  /// Whether the choice depends on other options, including those in less specific places.
  fileprivate var hasConditions: Bool { !beside.isEmpty || !without.isEmpty }

  /// Whether the choice has conditions that hold, and excludes a setting of a place.
  ///
  /// - Parameter places: all options that are chosen, with the places of their choices. A choice
  ///   in the place of the setting is a mistake there, and one without options is always made.
  func excludes(_ name: String, at place: Int, chosen places: [String: Int]) -> Bool {
    guard hasConditions, replaced.contains(name), beside.allSatisfy({ places[$0] != nil }),
      without.allSatisfy({ places[$0] == nil })
    else { return false }
    return chosen.isEmpty || chosen.contains { places[$0].map { $0 < place } ?? false }
  }

  /// The choices in option groups that several commands have.
  static let ofGroups =
    oneOf(["new-passphrase-file"], ["new-passphrase-command"])
    + oneOf(["to-passphrase-file"], ["to-passphrase-command"], ["to-identity"])
    + ofBucket("s3-") + ofBucket("to-s3-")
    + target(device, dropping: consents) + target(["app"], dropping: consents)

  /// The options that name a device.
  static let device: Set<String> = ["device", "layout", "root"]

  /// The options with which a command changes a device or an app without a question or a safeguard.
  private static let consents: Set<String> = [
    "allow-downgrade", "force", "no-snapshot", "with-groups", "yes",
  ]

  /// The region, the profile and the form of names of one server mean nothing on another.
  private static func ofBucket(_ prefix: String) -> [OptionPrecedence] {
    choosing(
      [prefix + "endpoint"],
      replaces: Set(["region", "profile", "path-style"].map { prefix + $0 }))
  }
}

extension [OptionPrecedence] {
  /// Returns the choices among the given options that replace a setting.
  func replacing(_ setting: String, given: Set<String>) -> [OptionPrecedence] {
    filter {
      !$0.hasConditions && $0.replaced.contains(setting) && !$0.chosen.isDisjoint(with: given)
    }
  }

  /// Returns the choices that a setting makes and that have options set for them, if options that a
  /// more specific place sets or unsets make them again.
  func repeating(_ setting: String, named: Set<String>) -> [OptionPrecedence] {
    filter {
      !$0.dependent.isEmpty && $0.chosen.contains(setting) && !$0.chosen.isDisjoint(with: named)
    }
  }

  /// Whether arguments that are not options are a choice.
  var includeArguments: Bool {
    contains { choice in choice.chosen.contains { $0.hasPrefix("<") } }
  }
}
