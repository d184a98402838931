internal import Codecs
public import SandboxModel

/// One policy file, read and checked by itself.
public struct PolicyDocument: Sendable {
  /// The text it was read from.
  public let source: PolicySource
  /// Whether it is a policy, or lies over policies.
  public let role: Role
  /// What people call it.
  public let title: String?
  /// The names of the policies that it builds upon, the weakest first, and where they stand.
  public let extends: [Reference]
  /// The layout of devices that it is for.
  public let layout: Layout?
  /// The dispositions that classes start from.
  public let classes: [DataClass: ClassSettings]
  /// What happens to whole containers.
  public let containers: [ContainerKind: ContainerTerms]
  /// For how many seconds what operations put aside is kept.
  public let retain: [RetainedItem: Int64]
  /// The rules, in order.
  public let rules: [Rule]
  /// The rules of single apps, by bundle identifier, in the file's order.
  public let apps: [OwnedRules]
  /// The rules of single groups, by group identifier, in the file's order.
  public let groups: [OwnedRules]
  /// The apps that are known to share a group, by group identifier.
  public let groupMembers: [String: [String]]
  /// The marks, in order.
  public let markers: [Marker]
  /// The rules that stand behind those of every policy that extends this one.
  public let finalRules: [Rule]
  /// The marks that stand behind `finalRules`.
  public let finalMarkers: [Marker]
  /// What a purge does when space is short.
  public let pressure: [Pressure]
  /// How much an app may have of some data.
  public let quotas: [Quota]
  /// The policy's own tests.
  public let examples: [Example]

  /// The whole content, for the digest.
  let content: YAMLNode

  /// What a file is for.
  public enum Role: Sendable, Hashable {
    /// It is a policy of this name.
    case policy(String)
    /// It lies over the policies for these layouts, over all when there are none.
    case overlay(Set<String>)
  }

  /// The name of a policy, and where it is named.
  public struct Reference: Sendable, Hashable {
    /// The policy's name.
    public let name: String
    /// Where it is named.
    public let location: PolicyLocation
  }

  /// The rules of one app or one group.
  public struct OwnedRules: Sendable, Hashable {
    /// The identifier of the app or group.
    public let owner: String
    /// The rules, in order.
    public let rules: [Rule]
  }

  /// The dispositions of a class, as far as a file gives them.
  public struct ClassSettings: Sendable, Hashable {
    /// The values.
    public let settings: Settings
    /// Why it may let go what nobody can make again.
    public let allowLoss: String?
    /// Where they stand.
    public let location: PolicyLocation
  }

  /// The policy's name; nothing for an overlay.
  public var name: String? { if case .policy(let name) = role { name } else { nil } }

  /// Where the file begins.
  var location: PolicyLocation { PolicyLocation(source.name, content.mark) }

  /// Whether the file lies over policies for this layout.
  func isOverlay(for layout: Layout?) -> Bool {
    guard case .overlay(let layouts) = role else { return false }
    return layouts.isEmpty || layout.map { layouts.contains($0.rawValue) } ?? false
  }

  /// The layouts for which its rules must make sense; none where that cannot be said.
  var layouts: [Layout] {
    switch role {
    case .policy: layout.map { [$0] } ?? []
    case .overlay(let names): Layout.allCases.filter { names.contains($0.rawValue) }
    }
  }

  /// All lists of rules, in each of which a later rule overrides an earlier one.
  var ruleLists: [[Rule]] {
    [rules] + apps.map(\.rules) + groups.map(\.rules) + [finalRules]
  }
}
