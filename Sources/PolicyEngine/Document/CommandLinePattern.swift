internal import SandboxModel

/// A command-line option that acts as a rule. It applies to all containers and overrides every
/// file.
public enum CommandLinePattern: Sendable, Hashable {
  /// `--exclude`: never backs up the matching entries and everything below them, and excludes them
  /// from a purge.
  case exclude(Pattern.Text)
  /// `--include`: always backs up and restores the matching entries and everything below them, and
  /// never purges them.
  case include(Pattern.Text)
  /// `--exclude-larger-than`: never backs up files with more bytes.
  case excludeLargerThan(Int64)

  var option: String {
    switch self {
    case .exclude: "--exclude"
    case .include: "--include"
    case .excludeLargerThan: "--exclude-larger-than"
    }
  }

  /// The pattern.
  var text: Pattern.Text {
    switch self {
    case .exclude(let text), .include(let text): text
    case .excludeLargerThan: "**"
    }
  }

  /// The identity of the option, for the digest.
  var content: [String] {
    if case .excludeLargerThan(let size) = self { return [option, String(size)] }
    // The text shown for non-UTF-8 bytes can equal the text of another pattern.
    return [option + (text.isUTF8 ? "" : "-bytes"), text.shown]
  }

  private var settings: Settings {
    switch self {
    case .include:
      Settings(backup: Settings.Backup(.always), purge: .never, restore: .restore)
    // A user who excludes an entry from a purge does not want it to be deleted.
    case .exclude: Settings(backup: Settings.Backup(.never), purge: .never)
    case .excludeLargerThan: Settings(backup: Settings.Backup(.never))
    }
  }

  private var conditions: Rule.Conditions {
    var conditions = Rule.Conditions()
    if case .excludeLargerThan(let size) = self { conditions.largerThan = size }
    return conditions
  }

  /// Returns the rule that represents the option.
  func rule(number: Int) throws(PolicyIssue) -> Rule {
    do {
      let pattern = try Pattern(parsing: text)
      let location = PolicyLocation(file: option, line: number, column: 1)
      return Rule(
        id: "\(option.dropFirst(2))-\(number)", location: location,
        kinds: Set(ContainerKind.allCases), pattern: pattern.coveringDescendants(),
        settings: settings, platform: .same, conditions: conditions, versions: .all, why: nil,
        source: nil, allowLoss: nil, patternLocation: location)
    } catch {
      let location = PolicyLocation(file: option, line: number, column: error.offset + 1)
      throw PolicyIssue(
        .pattern, at: location, "\(error.problem) in '\(text.shown)'", expected: error.expected)
    }
  }
}
