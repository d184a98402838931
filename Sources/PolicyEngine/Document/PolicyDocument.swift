internal import Codecs
public import SandboxModel

/// A policy file, read and checked individually.
public struct PolicyDocument: Sendable {
  /// The text of the file.
  public let source: PolicySource
  /// Whether it is a policy or an overlay.
  public let role: Role
  /// The display name.
  public let title: String?
  /// The policies that it extends, in ascending order of precedence, with positions.
  public let extends: [Reference]
  /// The device layout to which it applies.
  public let layout: Layout?
  /// The initial dispositions of classes.
  public let classes: [DataClass: ClassSettings]
  /// The handling of whole containers.
  public let containers: [ContainerKind: ContainerTerms]
  /// The retention time of data that operations set aside, in seconds.
  public let retain: [RetainedItem: Int64]
  /// The rules, in order.
  public let rules: [Rule]
  /// The rules of single apps, by bundle identifier, in the file's order.
  public let apps: [OwnedRules]
  /// The rules of single groups, by group identifier, in the file's order.
  public let groups: [OwnedRules]
  /// The apps known to share a group, by group identifier.
  public let groupMembers: [String: [String]]
  /// The markers, in order.
  public let markers: [Marker]
  /// The rules applied after those of every policy that extends this one.
  public let finalRules: [Rule]
  /// The markers applied after `finalRules`.
  public let finalMarkers: [Marker]
  /// The purge levels.
  public let pressure: [Pressure]
  /// The amount of data that an app may keep before it is purged ahead of others.
  public let quotas: [Quota]
  /// The policy's tests.
  public let examples: [Example]

  /// The whole content, for the digest.
  let content: YAMLNode

  /// The purpose of a file.
  public enum Role: Sendable, Hashable {
    /// A policy with this name.
    case policy(String)
    /// An overlay over the policies for these layouts, or over all policies if empty.
    case overlay(Set<String>)
  }

  /// A reference to a policy by name.
  public struct Reference: Sendable, Hashable {
    /// The policy's name.
    public let name: String
    /// The position of the reference.
    public let location: PolicyLocation
  }

  /// The rules of one app or one group.
  public struct OwnedRules: Sendable, Hashable {
    /// The identifier of the app or group.
    public let owner: String
    /// The rules, in order.
    public let rules: [Rule]
  }

  /// The dispositions of a class, as far as the file sets them.
  public struct ClassSettings: Sendable, Hashable {
    /// The values.
    public let settings: Settings
    /// The reason for permitting the loss of precious data.
    public let allowLoss: String?
    /// The position in the file.
    public let location: PolicyLocation
  }

  /// The policy's name, or nil for an overlay.
  public var name: String? { if case .policy(let name) = role { name } else { nil } }

  /// The start of the file's content.
  var location: PolicyLocation { PolicyLocation(source.name, content.mark) }

  /// Whether the file is an overlay over policies for this layout.
  func isOverlay(for layout: Layout?) -> Bool {
    guard case .overlay(let layouts) = role else { return false }
    return layouts.isEmpty || layout.map { layouts.contains($0.rawValue) } ?? false
  }

  /// Whether a mistake obscures the purpose of the file: an overlay over a layout that does not
  /// exist, or a file that is both a policy and an overlay. It may be meant for any policy.
  var isOfUnknownPurpose: Bool {
    switch role {
    case .policy: content["overlay"] != nil
    case .overlay(let names): names.contains { Layout(rawValue: $0) == nil }
    }
  }

  /// The layouts for which its rules are checked; empty if unknown.
  var layouts: [Layout] {
    switch role {
    case .policy: layout.map { [$0] } ?? []
    case .overlay(let names): Layout.allCases.filter { names.contains($0.rawValue) }
    }
  }

  /// All lists of rules. Within each list a later rule overrides an earlier one.
  var ruleLists: [[Rule]] {
    [rules] + apps.map(\.rules) + groups.map(\.rules) + [finalRules]
  }
}

extension PolicyDocument {
  /// Reads a file and performs the checks that need no other files.
  ///
  /// - Returns: The document, if the text is a policy at all, and every mistake. A document with
  ///   errors is usable only to find more mistakes.
  public static func read(_ source: PolicySource) -> (document: PolicyDocument?, [PolicyIssue]) {
    let (node, issues) = source.parse(
      as: "a policy", limits: YAML.Limits(bytes: PolicySource.maximumSize))
    guard let node else { return (nil, issues) }
    return read(source, node)
  }

  private static func read(
    _ source: PolicySource, _ node: YAMLNode
  ) -> (document: PolicyDocument?, [PolicyIssue]) {
    var check = GrammarCheck(file: source.name)
    check.check(node, against: .record(Grammar.file), named: "the file")
    guard node.mapping != nil else { return (nil, check.issues) }
    var reader = DocumentReader(file: source.name)
    let document = reader.document(node, source)
    let issues = check.issues + reader.issues
    return (document, issues.sorted { $0.location < $1.location })
  }
}
