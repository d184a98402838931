/// A choice that excludes settings of the configuration: options that are not used together with
/// the chosen ones, of which the command line, or the more specific part of the configuration, has
/// the last word.
struct OptionPrecedence: Sendable {
  /// The long names of the options of the choice, or `arguments`.
  let chosen: Set<String>
  /// The long names of the options that are not used if one of `chosen` is given.
  let replaced: Set<String>
  /// The long names of options that the user set for what is replaced, and that may destroy
  /// something else: they are dropped together with it.
  var dependent: Set<String> = []
  /// Of these the settings, as `NAME=VALUE`, that protect what is there: they stay.
  var protective: Set<String> = []

  /// The name that stands for arguments that are no options.
  static let arguments = "<arguments>"

  /// Returns the choices among options of which only those of one side can be used.
  ///
  /// - Parameter dependent: options that are not used for another side than that for which the
  ///   configuration sets them.
  static func oneOf(
    _ sides: Set<String>..., dropping dependent: Set<String> = []
  ) -> [OptionPrecedence] {
    sides.map { side in
      let others = sides.filter { $0 != side }.reduce(into: Set()) { $0.formUnion($1) }
      return OptionPrecedence(chosen: side, replaced: others, dependent: dependent)
    }
  }

  /// Returns the choice with settings that stay although their options are dependent.
  func protecting(_ settings: Set<String>) -> OptionPrecedence {
    var copy = self
    copy.protective = settings
    return copy
  }

  /// Whether a setting with some values, or none if it is a flag, is dropped together with one that
  /// is replaced.
  func drops(_ name: String, values: [String]) -> Bool {
    dependent.contains(name) && !values.contains { protective.contains("\(name)=\($0)") }
  }

  /// Returns the choice of options with which others have no meaning. Those do not replace the
  /// choice.
  static func choosing(
    _ chosen: Set<String>, replaces replaced: Set<String>
  ) -> [OptionPrecedence] {
    [OptionPrecedence(chosen: chosen, replaced: replaced)]
  }

  /// The choices of option groups that several commands have.
  static let ofGroups =
    oneOf(["new-passphrase-file"], ["new-passphrase-command"])
    + oneOf(["to-passphrase-file"], ["to-passphrase-command"], ["to-identity"])
    + ofBucket("s3-") + ofBucket("to-s3-")

  /// The region, the profile and the form of names of one server mean nothing on another.
  private static func ofBucket(_ prefix: String) -> [OptionPrecedence] {
    choosing(
      [prefix + "endpoint"],
      replaces: Set(["region", "profile", "path-style"].map { prefix + $0 }))
  }
}

extension [OptionPrecedence] {
  /// Returns the choices among the options that are given which replace a setting.
  func replacing(_ setting: String, given: Set<String>) -> [OptionPrecedence] {
    filter { $0.replaced.contains(setting) && !$0.chosen.isDisjoint(with: given) }
  }

  /// Whether arguments that are no options are a choice.
  var includeArguments: Bool { contains { $0.chosen.contains(OptionPrecedence.arguments) } }
}
