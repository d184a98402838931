public import SandboxModel

/// Which policy is wanted, for what.
public struct PolicyRequest: Sendable, Hashable {
  /// The policy's name; the layout's own when there is none.
  public var policy: String?
  /// The layout of the device; the policy's own when there is none.
  public var layout: Layout?
  /// The device's OS version; unknown, and taken as the newest, when there is none.
  public var osVersion: OSVersion?
  /// The command line's patterns, in their order.
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

/// A pattern of the command line. It means what it names and all below, in all containers, and
/// overrides every file.
public enum CommandLinePattern: Sendable, Hashable {
  /// `--exclude`: never backed up.
  case exclude(String)
  /// `--include`: always backed up, and restored.
  case include(String)

  var text: String {
    switch self {
    case .exclude(let text), .include(let text): text
    }
  }

  var option: String {
    switch self {
    case .exclude: "--exclude"
    case .include: "--include"
    }
  }

  private var settings: Settings {
    switch self {
    case .exclude: Settings(backup: BackupSetting(.never))
    case .include: Settings(backup: BackupSetting(.always), restore: .restore)
    }
  }

  /// The rule that the option stands for.
  func rule(number: Int) throws(PolicyIssueError) -> Rule {
    let name = option.dropFirst(2)
    do {
      let pattern = try Pattern(parsing: text)
      let location = SourceLocation(file: option, line: 1, column: 1)
      return Rule(
        id: "\(name)-\(number)", location: location, kinds: Set(ContainerKind.allCases),
        pattern: pattern.coveringDescendants(), settings: settings, platform: .same,
        conditions: Conditions(), versions: .all, why: nil, source: nil, allowLoss: nil,
        patternLocation: location)
    } catch {
      let place = SourceLocation(file: option, line: 1, column: error.offset + 1)
      throw PolicyIssueError(
        issue: PolicyIssue(
          .pattern, at: place, "\(error.problem) in '\(text)'", expected: error.expected))
    }
  }
}

/// One mistake, on its way to the others.
struct PolicyIssueError: Error {
  let issue: PolicyIssue
}
