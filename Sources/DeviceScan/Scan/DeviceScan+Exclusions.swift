public import ArchiveStore
internal import Codecs
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

extension DeviceScan {
  /// Returns the entries that the policy excludes from backups, by rule: each topmost excluded
  /// directory, and the single files of a container together, at the container's root.
  public func exclusions() -> [Exclusion] {
    containers.flatMap { Self.exclusions(in: $0, by: policy) }
  }

  private static func exclusions(
    in scan: ContainerScan, by policy: CompiledPolicy
  ) -> [Exclusion] {
    let sums = sums(scan)
    var found: [Exclusion] = []
    var files: [String: EntryTotals] = [:]
    for index in scan.entries.indices where isTopmost(index, scan) {
      let rule = policy.rule(reportingOmissions: scan.query(index)) ?? "the program's own"
      if scan.entries[index].status.kind == .directory {
        let (path, sum) = (scan.logicalPath(index), sums[index])
        found.append(
          Exclusion(
            path: path, rule: rule, files: UInt64(sum.files), bytes: sum.bytes,
            directory: directory(index, scan)))
      } else {
        files[rule, default: EntryTotals()].add(sums[index])
      }
    }
    return found
      + files.sorted { $0.key < $1.key }.map { rule, sum in
        Exclusion(
          path: scan.container.logicalPrefix, rule: rule, files: UInt64(sum.files),
          bytes: sum.bytes)
      }
  }

  /// Returns a directory that a restore recreates empty, with its metadata. Attributes that cannot
  /// be read or are too long for a snapshot are omitted.
  private static func directory(_ index: Int, _ scan: ContainerScan) -> TreeEntry? {
    let entry = scan.entries[index]
    guard entry.verdicts.keep.restore == .recreateEmpty, index > 0 else { return nil }
    var attributes: [Attribute] = []
    var flags: UInt32 = 0
    // By handles from the container on, so that no link is followed.
    let root = scan.container.absolutePath
    var cursor = try? DirectoryCursor(root: Directory.open(resolved: root))
    try? cursor?.withDirectory(at: scan.path(index).components) { directory throws(SystemError) in
      attributes = try directory.attributes.all().filter {
        $0.name != Attribute.hostLabel && $0.value.count <= Attribute.inlineLimit
      }.map { Attribute(name: $0.name, value: .inline($0.value)) }
      flags = try directory.flags() ?? 0
    }
    return TreeEntry(
      name: scan.name(index), node: .directory(TreeReference(Blake2b.hash([]))),
      status: entry.status, attributes: attributes, flags: flags)
  }

  private static func isTopmost(_ index: Int, _ scan: ContainerScan) -> Bool {
    let entry = scan.entries[index]
    guard entry.selection == .excluded else { return false }
    return index == 0 || scan.entries[Int(entry.parent)].selection != .excluded
  }

  /// Returns the excluded files and bytes at and below each entry.
  private static func sums(_ scan: ContainerScan) -> SpillableArray<EntryTotals> {
    var sums = SpillableArray(repeating: EntryTotals(), count: scan.entries.count)
    for index in scan.entries.indices.reversed() {
      let entry = scan.entries[index]
      guard entry.selection == .excluded else { continue }
      sums[index].add(entry.status)
      if index > 0 { sums[Int(entry.parent)].add(sums[index]) }
    }
    return sums
  }
}
