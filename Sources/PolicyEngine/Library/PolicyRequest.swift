public import SandboxModel

/// Which policy is wanted, for what.
public struct PolicyRequest: Sendable, Hashable {
  /// The policy's name; the layout's own when there is none.
  public var policy: String?
  /// The layout of the device; the policy's own when there is none.
  public var layout: Layout?
  /// The device's OS version; unknown, and taken as the newest, when there is none.
  public var osVersion: OSVersion?
  /// What the command line says besides, in its order.
  public var patterns: [CommandLinePattern]

  /// Makes a request.
  public init(
    policy: String? = nil, layout: Layout? = nil, osVersion: OSVersion? = nil,
    patterns: [CommandLinePattern] = []
  ) {
    self.policy = policy
    self.layout = layout
    self.osVersion = osVersion
    self.patterns = patterns
  }
}

/// What the command line says of data besides all files. It counts in all containers and overrides
/// every file.
public enum CommandLinePattern: Sendable, Hashable {
  /// `--exclude`: what the pattern names and all below is never backed up.
  case exclude(PatternText)
  /// `--include`: what the pattern names and all below is always backed up, and restored.
  case include(PatternText)
  /// `--exclude-larger-than`: files of more bytes are never backed up.
  case excludeLargerThan(Int64)

  var option: String {
    switch self {
    case .exclude: "--exclude"
    case .include: "--include"
    case .excludeLargerThan: "--exclude-larger-than"
    }
  }

  /// The pattern.
  var text: PatternText {
    switch self {
    case .exclude(let text), .include(let text): text
    case .excludeLargerThan: "**"
    }
  }

  /// What sets it apart from others, for the digest.
  var content: [String] {
    if case .excludeLargerThan(let size) = self { return [option, String(size)] }
    // What stands for bytes may be the text of another pattern.
    return [option + (text.isUTF8 ? "" : "-bytes"), text.shown]
  }

  private var settings: Settings {
    if case .include = self {
      return Settings(backup: BackupSetting(.always), restore: .restore)
    }
    return Settings(backup: BackupSetting(.never))
  }

  private var conditions: Conditions {
    var conditions = Conditions()
    if case .excludeLargerThan(let size) = self { conditions.largerThan = size }
    return conditions
  }

  /// The rule that the option stands for.
  func rule(number: Int) throws(PolicyIssueError) -> Rule {
    do {
      let pattern = try Pattern(parsing: text)
      let location = PolicyLocation(file: option, line: number, column: 1)
      return Rule(
        id: "\(option.dropFirst(2))-\(number)", location: location,
        kinds: Set(ContainerKind.allCases), pattern: pattern.coveringDescendants(),
        settings: settings, platform: .same, conditions: conditions, versions: .all, why: nil,
        source: nil, allowLoss: nil, patternLocation: location)
    } catch {
      let place = PolicyLocation(file: option, line: number, column: error.offset + 1)
      throw PolicyIssueError(
        issue: PolicyIssue(
          .pattern, at: place, "\(error.problem) in '\(text.shown)'", expected: error.expected))
    }
  }
}

/// One mistake, on its way to the others.
struct PolicyIssueError: Error {
  let issue: PolicyIssue
}
