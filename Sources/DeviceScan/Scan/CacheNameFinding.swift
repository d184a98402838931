public import PolicyEngine
public import SandboxModel
public import SystemIO

/// A directory that is kept although its name suggests a cache.
///
/// A finding changes nothing: neither a backup nor a purge depends on it.
public struct CacheNameFinding: Sendable {
  public let container: Container
  /// The path in the container.
  public let path: ByteString
  public let kind: CacheName
  /// The data class of the directory.
  public let dataClass: DataClass
  /// The kept files below the directory, including those in further directories with such names.
  public let totals: EntryTotals

  /// The logical path.
  public var logicalPath: ByteString { container.logicalPrefix.appending(path) }
}

extension DeviceScan {
  /// Returns the topmost directories with a kept class and kept files below them whose names
  /// suggest a cache, in the order of the scan.
  ///
  /// A file is kept if its class is kept and a backup includes it. Each entry is visited once.
  ///
  /// - Parameters:
  ///   - scope: the logical path below which directories are searched (default: the whole device).
  ///   - view: the view whose verdict counts.
  public func cacheNames(
    within scope: ByteString? = nil, in view: Verdicts.View = .keep
  ) -> [CacheNameFinding] {
    containers.flatMap { container in
      var search = CacheNameSearch(container, within: scope, view: view)
      search.run()
      return search.findings
    }
  }
}

/// A search for the findings of one container.
private struct CacheNameSearch {
  private let scan: ContainerScan
  private let scope: ByteString?
  private let view: Verdicts.View
  private(set) var findings: [CacheNameFinding] = []

  init(_ scan: ContainerScan, within scope: ByteString?, view: Verdicts.View) {
    (self.scan, self.scope, self.view) = (scan, scope, view)
  }

  mutating func run() {
    var pending = scan.entries.isEmpty ? [] : [0]
    while let directory = pending.popLast() {
      if let kind = kind(of: directory) {
        add(directory, kind)
      } else {
        pending += directories(in: directory)
      }
    }
  }

  /// Returns the kind of a directory's name, if the directory has a kept class and is not above the
  /// directory to which the search is limited.
  private func kind(of directory: Int) -> CacheName? {
    guard directory > 0, scan.entries[directory].verdicts[view].dataClass.isKept,
      let kind = scan.withName(directory, { CacheName($0) })
    else { return nil }
    return scope.map { scan.logicalPath(directory).isWithin($0) } ?? true ? kind : nil
  }

  /// Returns the directories in a directory, so that the last one is the first of the scan.
  private func directories(in directory: Int) -> [Int] {
    scan.entries[directory].children.reversed().filter {
      scan.entries[$0].status.kind == .directory
    }
  }

  private mutating func add(_ top: Int, _ kind: CacheName) {
    var (totals, pending) = (EntryTotals(), [top])
    while let directory = pending.popLast() {
      for index in scan.entries[directory].children {
        let entry = scan.entries[index]
        if entry.status.kind == .directory {
          pending.append(index)
        } else if entry.selection != .excluded, entry.verdicts[view].dataClass.isKept {
          totals.add(entry.status)
        }
      }
    }
    guard totals.files > 0 else { return }
    findings.append(
      CacheNameFinding(
        container: scan.container, path: scan.path(top), kind: kind,
        dataClass: scan.entries[top].verdicts[view].dataClass, totals: totals))
  }
}
