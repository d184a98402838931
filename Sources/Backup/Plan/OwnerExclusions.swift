internal import ArchiveStore
internal import DeviceScan
package import PolicyEngine
internal import SandboxModel
package import SystemIO

extension BackupPlan {
  /// The exclusions and containers of a plan by app, group or directory, grouped once.
  package struct OwnerExclusions {
    private let root: ByteString
    private let scanned: LogicalPathLookup
    private let excluded: [ByteString: [Exclusion]]
    private let containers: [ByteString: [Container]]

    /// Groups the exclusions and containers of a plan.
    package init(_ plan: BackupPlan) {
      root = plan.device.root
      scanned = LogicalPathLookup(plan.scans)
      excluded = Dictionary(grouping: plan.excluded, by: \.path.subject)
      containers = Dictionary(grouping: plan.scans.map(\.container), by: \.logicalPrefix.subject)
    }

    /// Returns the path in its container of the largest excluded directory of a class; nil if the
    /// class alone implies the location.
    package func location(of dataClass: DataClass, in owner: ByteString) -> ByteString? {
      if dataClass == .cache || dataClass == .temporary { return nil }
      let directories = (excluded[owner] ?? []).sorted { $0.bytes > $1.bytes }
      for directory in directories {
        guard let (scan, index) = scanned.entry(at: directory.path), index > 0,
          scan.entries[index].verdicts.keep.dataClass == dataClass
        else { continue }
        return scan.path(index)
      }
      return nil
    }

    /// Returns the absolute path of a container that a symbolic link places outside of the device's
    /// directory, or nil if there is none.
    package func outside(_ owner: ByteString) -> ByteString? {
      containers[owner]?.first { container in
        !container.path.isAbsolute && !container.absolutePath.isWithin(root)
      }?.absolutePath
    }
  }
}
