internal import SandboxModel
internal import SystemIO

extension PackageTable {
  /// How many links may lead on to others, as on Linux.
  private static let maximumHops = 40

  /// Follows each link as the kernel would, by the package's own entries, and refuses one that leaves
  /// the bundle at any point of its way. One that leads to nothing in the bundle is let be.
  func checkLinks() throws(ModelError) {
    for row in rows {
      guard case .link(let target) = row.entry.kind else { continue }
      if let reason = wayOut(of: row.entry.path, target) {
        throw fault.unsafe("its link '\(row.entry.path)' leads to '\(target)', \(reason)")
      }
    }
  }

  /// Why a link may not be: nil when it stays in the bundle.
  private func wayOut(of link: ByteString, _ target: ByteString) -> String? {
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
      let path = ByteString(
        (here + [name]).map(\.bytes).joined(separator: [PackageName.slash]))
      guard case .link(let next)? = self[path]?.entry.kind else {
        here.append(name)
        continue
      }
      hops += 1
      if hops > Self.maximumHops { return "which leads on through more than 40 links" }
      if let reason = push(next, &ahead) { return reason }
    }
    return nil
  }

  /// Puts a target's components before those that are still to be gone, the next one last.
  private func push(_ target: ByteString, _ ahead: inout [ByteString]) -> String? {
    if target.isEmpty { return "which is empty" }
    if target.hasNUL { return "which holds a NUL byte" }
    if target.count > 4095 { return "which has more than 4,095 bytes" }
    if target.isAbsolute { return "which is outside the bundle" }
    ahead += target.components.reversed()
    return nil
  }
}
