internal import SandboxModel
internal import SystemIO

/// Guesses the apps of a group from identifiers if no entitlements could be read.
///
/// The prefix of the group's identifier (`group.`, or a team's ten letters and digits and
/// `groups.`) is removed, and the rest is compared with the app's identifier component by
/// component, ignoring ASCII case. The apps that share the most leading components are taken as
/// members, if there are at least two such components and not only a prefix shared by unrelated
/// apps, such as `com.apple` or `io.github`. A guess never removes anything.
enum GroupGuess {
  private static let shared: [[String]] = [
    ["com", "apple"], ["io", "github"], ["com", "github"], ["io", "gitlab"], ["com", "gitlab"],
  ]

  /// Returns the apps that are probably members of the group.
  static func members(
    of group: BundleIdentifier, among apps: [BundleIdentifier]
  ) -> [BundleIdentifier] {
    let wanted = name(of: group)
    let scores = apps.map { common(wanted, folded($0.components)) }
    guard let best = scores.max(), best >= 2,
      best > 2 || !shared.contains(Array(wanted.prefix(2)))
    else { return [] }
    return zip(apps, scores).filter { $0.1 == best }.map(\.0)
  }

  private static func name(of group: BundleIdentifier) -> [String] {
    var parts = folded(group.components)
    if let team = parts.first, team.utf8.count == 10, parts.count > 2,
      team.utf8.contains(where: { (0x30...0x39).contains($0) })
    {
      parts.removeFirst()
    }
    if parts.first == "group" || parts.first == "groups" { parts.removeFirst() }
    return parts
  }

  private static func folded(_ components: [ArraySlice<UInt8>]) -> [String] {
    components.map { String(decoding: $0, as: UTF8.self).lowercased() }
  }

  private static func common(_ left: [String], _ right: [String]) -> Int {
    zip(left, right).prefix { $0 == $1 }.count
  }
}
