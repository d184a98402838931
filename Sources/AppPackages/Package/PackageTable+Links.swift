internal import SandboxModel
internal import SystemIO

extension PackageTable {
  /// The maximum number of links in a chain, as on Linux.
  private static let maximumHops = 40

  /// Resolves each link in the package as the kernel would, and refuses a link that leaves the
  /// bundle at any step. Dangling links within the bundle are permitted.
  func checkLinks() throws(ModelError) {
    for row in rows {
      guard case .link(let target) = row.entry.kind else { continue }
      if let reason = escapeReason(of: row.entry.path, target) {
        throw fault.unsafe("its link '\(row.entry.path)' leads to '\(target)', \(reason)")
      }
    }
  }

  /// Returns the reason why a link is refused, or nil if it stays in the bundle.
  private func escapeReason(of link: ByteString, _ target: ByteString) -> String? {
    var here = Array(link.components.dropLast())
    var ahead: [ByteString] = []
    if let reason = push(target, &ahead) { return reason }
    var hops = 1
    while let name = ahead.popLast() {
      if name == "." { continue }
      if name == ".." {
        here.removeLast()
        if here.isEmpty { return "which is outside the bundle" }
        continue
      }
      let path = ByteString(joining: here + [name])
      guard case .link(let next)? = self[path]?.entry.kind else {
        here.append(name)
        continue
      }
      hops += 1
      if hops > Self.maximumHops { return "which leads through more than 40 links" }
      if let reason = push(next, &ahead) { return reason }
    }
    return nil
  }

  /// Adds the components of a target before the remaining ones; the next component is last.
  private func push(_ target: ByteString, _ ahead: inout [ByteString]) -> String? {
    if target.isEmpty { return "which is empty" }
    if target.hasNUL { return "which contains a NUL byte" }
    if target.count > 4095 { return "which has more than 4,095 bytes" }
    if target.isAbsolute { return "which is outside the bundle" }
    ahead += target.components.reversed()
    return nil
  }
}
