package import ArchiveStore
package import DeviceScan
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

extension BackupPlan {
  /// The bundles that a plan excludes only because the repository is in a cloud.
  package struct BundlesOutsideCloud: Sendable {
    /// The files that a backup with bundles would store, too.
    package private(set) var totals = EntryTotals()
    /// The logical paths of the bundles.
    private var paths: Set<ByteString> = []

    /// The number of bundles.
    package var count: Int { paths.count }

    /// Finds the bundles of a scan: none for a backup that is not to a cloud, or includes them.
    init(_ scan: DeviceScan) {
      let destination = scan.options.destination
      let whole = destination.withBundles.deciding(for: .bundle)
      guard whole != destination.deciding(for: .bundle) else { return }
      for found in scan.containers where found.container.kind == .bundle {
        var bundle = EntryTotals()
        for entry in found.entries
        where entry.selection == .excluded
          && entry.verdicts[scan.options.view].backup.mode(for: whole) != .never
        {
          bundle.add(entry.status)
        }
        if bundle.files == 0 { continue }
        totals.add(bundle)
        paths.insert(found.container.logicalPrefix)
      }
    }

    /// Whether an exclusion is of such a bundle.
    package func contains(_ exclusion: Exclusion) -> Bool {
      paths.contains { exclusion.path.isWithin($0) }
    }
  }
}
