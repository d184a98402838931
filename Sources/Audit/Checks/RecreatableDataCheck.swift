internal import DeviceScan
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// Data in backups that an app can recreate or download again: directories whose names suggest a
/// cache, and copies of files of its own bundle.
///
/// The total of an app counts: the store refused apps for 2.75 MB.
enum RecreatableDataCheck: AuditCheck {
  /// The size of such data that an app may have, in bytes.
  static let threshold: UInt64 = 2_000_000
  /// The minimum size of a copy: smaller files can have equal names and sizes by coincidence.
  static let minimumCopy: UInt64 = 64 << 10
  /// The bytes of a file and its copy that are compared.
  private static let maximumCompared: UInt64 = 1 << 30
  /// The maximum number of files of one name and size in a bundle with which a copy is compared.
  private static let maximumOriginals = 16

  /// A directory or file that can be recreated.
  private struct Candidate {
    let scan: Int
    let index: Int
    let totals: EntryTotals
    let detail: String
  }

  static func run(_ context: AuditContext, into findings: inout FindingCollector) {
    let candidates = caches(context) + copies(context)
    var sums: [ByteString: UInt64] = [:]
    for candidate in candidates {
      sums[owner(candidate, context), default: 0].addClamping(candidate.totals.bytes)
    }
    for candidate in candidates where sums[owner(candidate, context), default: 0] > threshold {
      let scan = context.scan.containers[candidate.scan]
      findings.add(
        context.finding(
          .recreatableData, candidate.index, in: scan, totals: candidate.totals,
          detail: candidate.detail,
          command: .own(["exclude", scan.logicalPath(candidate.index)])))
    }
  }

  /// The app or group whose total counts.
  private static func owner(_ candidate: Candidate, _ context: AuditContext) -> ByteString {
    let container = context.scan.containers[candidate.scan].container
    return (container.owner ?? container.identifier)?.bytes ?? container.logicalPrefix
  }

  private static func caches(_ context: AuditContext) -> [Candidate] {
    var numbers: [ByteString: Int] = [:]
    for (number, scan) in context.scan.containers.enumerated() {
      numbers[scan.container.logicalPrefix] = number
    }
    return context.scan.cacheNames().compactMap { found in
      guard let number = numbers[found.container.logicalPrefix],
        let index = context.scan.containers[number].index(of: found.path)
      else { return nil }
      return Candidate(
        scan: number, index: index, totals: found.totals, detail: "its name suggests a cache")
    }
  }

  /// A file's name and size.
  private struct Resource: Hashable {
    let name: ByteString
    let size: UInt64
  }

  /// A file of a bundle, by the numbers of the scan and of the entry.
  private struct Original {
    let scan: Int
    let index: Int
  }

  private static func copies(_ context: AuditContext) -> [Candidate] {
    let resources = resources(context)
    if resources.isEmpty { return [] }
    var found: [Candidate] = []
    for (number, scan) in context.scan.containers.enumerated() {
      guard scan.container.kind == .data || scan.container.kind == .extension,
        let own = scan.container.owner.flatMap({ resources[$0] })
      else { continue }
      for index in scan.entries.indices where isKept(scan.entries[index]) {
        let entry = scan.entries[index]
        let name = scan.name(index)
        guard let originals = own[Resource(name: name, size: entry.status.size)],
          !isInCache(index, scan), !ChangeCheck.isDatabase(index, scan),
          originals.contains(where: {
            isCopy(index, in: scan, of: $0.index, in: context.scan.containers[$0.scan])
          })
        else { continue }
        var totals = EntryTotals()
        totals.add(entry.status)
        found.append(
          Candidate(
            scan: number, index: index, totals: totals,
            detail: "the app's bundle has the same file"))
      }
    }
    return found
  }

  /// Whether two files of one size have the same content. Without this comparison, a document that
  /// the app started from a template in its bundle would count as a copy. A database is never a
  /// copy, because the app writes to it or to its log. A file that cannot be read is not a copy
  /// either.
  private static func isCopy(
    _ index: Int, in scan: ContainerScan, of original: Int, in bundle: ContainerScan
  ) -> Bool {
    let size = min(scan.entries[index].status.size, maximumCompared)
    do throws(SystemError) {
      var reader = try ContainerReader(scan.container)
      var bundleReader = try ContainerReader(bundle.container)
      guard let copy = try reader.file(scan.path(index)),
        let file = try bundleReader.file(bundle.path(original))
      else { return false }
      var (own, other): ([UInt8], [UInt8]) = ([], [])
      var at: UInt64 = 0
      while at < size {
        try copy.read(count: 1 << 18, at: at, into: &own)
        try file.read(count: 1 << 18, at: at, into: &other)
        if own.isEmpty || own != other { return false }
        at += UInt64(own.count)
      }
      return true
    } catch { return false }
  }

  private static func isKept(_ entry: ScannedEntry) -> Bool {
    entry.status.kind == .file && entry.status.size >= minimumCopy && entry.selection == .included
      && entry.verdicts.keep.dataClass.isKept
  }

  /// Whether a directory above an entry is itself a candidate by its name.
  private static func isInCache(_ index: Int, _ scan: ContainerScan) -> Bool {
    scan.directories(to: index).dropLast().contains { directory in
      scan.entries[Int(directory)].verdicts.keep.dataClass.isKept
        && scan.withName(Int(directory)) { CacheName($0) } != nil
    }
  }

  /// Returns the large files of the apps' bundles.
  private static func resources(
    _ context: AuditContext
  ) -> [BundleIdentifier: [Resource: [Original]]] {
    var resources: [BundleIdentifier: [Resource: [Original]]] = [:]
    for (number, scan) in context.scan.containers.enumerated()
    where scan.container.kind == .bundle {
      guard let owner = scan.container.owner else { continue }
      for index in scan.entries.indices {
        let status = scan.entries[index].status
        guard status.kind == .file, status.size >= minimumCopy else { continue }
        let resource = Resource(name: scan.name(index), size: status.size)
        guard resources[owner]?[resource]?.count ?? 0 < maximumOriginals else { continue }
        resources[owner, default: [:]][resource, default: []].append(
          Original(scan: number, index: index))
      }
    }
    return resources
  }
}
