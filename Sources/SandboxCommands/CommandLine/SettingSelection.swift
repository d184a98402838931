internal import SystemIO

/// The settings of a configuration that a command uses, without those that a more specific place
/// overrides or replaces: the command line, the environment, or a more specific part of the file.
///
/// A setting that lets a command destroy something is meant for the target set in the same place,
/// or in a less specific one. If a more specific place names a target, the setting is dropped
/// together with the replaced target. No values are compared: a path has many names.
struct SettingSelection {
  private let precedence: [OptionPrecedence]
  /// The options that more specific places set or unset, with the number of the most specific one.
  private var named: [String: Int]
  /// Those of them that choose anything.
  private var chosen: [String: Int]
  private var kept: [Kept] = []
  private var replacements: [Replacement] = []

  private struct Kept {
    let found: Configuration.FoundSetting
    let place: Int
  }

  /// A choice that replaces one of a less specific place.
  private struct Replacement {
    let choice: OptionPrecedence
    let place: Int
  }

  /// Returns the settings that are used.
  ///
  /// - Parameters:
  ///   - settings: the settings, the most specific ones first.
  ///   - names: the options that the command line sets or unsets.
  ///   - given: the options that the command line sets.
  static func of(
    _ settings: [Configuration.FoundSetting], besides names: Set<String>, chosen given: Set<String>,
    by precedence: [OptionPrecedence]
  ) -> [Configuration.FoundSetting] {
    var selection = SettingSelection(precedence, named: names, chosen: given)
    selection.add(settings)
    return selection.used
  }

  private init(_ precedence: [OptionPrecedence], named: Set<String>, chosen: Set<String>) {
    self.precedence = precedence
    self.named = Dictionary(
      uniqueKeysWithValues: named.union(chosen).map { ($0, Self.commandLine) })
    self.chosen = Dictionary(uniqueKeysWithValues: chosen.map { ($0, Self.commandLine) })
  }

  private static let commandLine = 0

  private mutating func add(_ settings: [Configuration.FoundSetting]) {
    var place = Self.commandLine
    var rest = settings[...]
    while let first = rest.first {
      let part = rest.prefix { $0.part == first.part }
      rest = rest.dropFirst(part.count)
      if !first.isOfProfile { addEnvironment(&place) }
      place += 1
      add(part, at: place)
    }
  }

  /// The environment's repository takes precedence over the file's, but not over a profile's.
  private mutating func addEnvironment(_ place: inout Int) {
    guard named["repo"] == nil, Host.environment("SANDBOXCTL_REPOSITORY") != nil else { return }
    place += 1
    (named["repo"], chosen["repo"]) = (place, place)
  }

  /// Adds the settings of one part. Contradictions in it stay; they are mistakes.
  private mutating func add(_ part: ArraySlice<Configuration.FoundSetting>, at place: Int) {
    let (names, given) = (Set(named.keys), Set(chosen.keys))
    for found in part {
      let name = found.setting.name
      let isOverridden = names.contains(name)
      let others = precedence.replacing(name, given: given)
      if found.setting.isChoice {
        let replacing = others + precedence.repeating(name, named: names)
        replacements += replacing.compactMap { choice in
          choice.chosen.compactMap { named[$0] }.filter { $0 < place }.min()
            .map { Replacement(choice: choice, place: $0) }
        }
      }
      if isOverridden { continue }
      named[name] = place
      if !others.isEmpty { continue }
      if found.setting.isChoice { chosen[name] = place }
      kept.append(Kept(found: found, place: place))
    }
  }

  /// The settings that are not dropped together with a replaced one and that have an effect in
  /// combination with the others.
  private var used: [Configuration.FoundSetting] {
    let left = kept.filter { !isDropped($0) }
    return left.filter { setting in
      !precedence.contains {
        $0.excludes(setting.found.setting.name, at: setting.place, chosen: chosen)
      }
    }.map(\.found)
  }

  private func isDropped(_ setting: Kept) -> Bool {
    let (name, values) = (setting.found.setting.name, setting.found.setting.values)
    return replacements.contains { replacement in
      let others = Set(chosen.filter { $0.value <= replacement.place }.keys)
      return setting.place > replacement.place
        && replacement.choice.drops(name, values: values, chosen: others)
    }
  }
}
