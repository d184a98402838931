package import ArchiveStore
internal import DeviceScan
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

extension BackupPlan {
  /// The bundles that a plan excludes only because the repository is in a cloud.
  package struct BundlesOutsideCloud: Sendable {
    /// The number of bundles.
    package private(set) var count = 0
    /// The additional bytes of files that a backup with bundles would store.
    package private(set) var bytes: UInt64 = 0
    /// The rules of the exclusions by path.
    private var rules: [ByteString: Set<String>] = [:]

    /// Finds the bundles of a scan: none for a backup that is not to a cloud or that includes them.
    init(_ scan: DeviceScan) {
      let destination = scan.options.destination
      let whole = destination.withBundles.deciding(for: .bundle)
      guard whole != destination.deciding(for: .bundle) else { return }
      for container in scan.containers where container.container.kind == .bundle {
        let found = scan.exclusions(in: container) { entry in
          entry.verdicts[scan.options.view].backup.mode(for: whole) != .never
        }
        if !found.isEmpty { count += 1 }
        for exclusion in found {
          bytes.addClamping(exclusion.bytes)
          rules[exclusion.path, default: []].insert(exclusion.rule)
        }
      }
    }

    /// Whether an exclusion is for such a bundle.
    package func contains(_ exclusion: Exclusion) -> Bool {
      rules[exclusion.path]?.contains(exclusion.rule) == true
    }
  }
}
