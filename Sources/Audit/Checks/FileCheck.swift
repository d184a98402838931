internal import DeviceScan
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// Logs that are larger than their databases, and large property lists in XML.
enum FileCheck: AuditCheck {
  /// The size in bytes up to which a log grows in normal use: SQLite checkpoints at 1,000 pages of
  /// 4 KiB (PRAGMA wal_autocheckpoint).
  static let usualLog: UInt64 = 1000 * 4096
  /// The size in bytes from which the form of a property list matters.
  static let largeList: UInt64 = 64 << 10

  private static let logSuffix = Array("-wal".utf8)
  private static let listSuffix = Array(".plist".utf8)

  static func run(_ context: AuditContext, into findings: inout FindingCollector) {
    for scan in context.scan.containers where scan.container.kind != .bundle {
      let lookup = EntryLookup(scan)
      var lists: [Int] = []
      for index in scan.entries.indices {
        let status = scan.entries[index].status
        // The smaller of the two limits: for most files, the name need not be examined.
        guard status.kind == .file, status.size > largeList else { continue }
        let (isLog, isList) = scan.withName(index) { name in
          (name.hasSuffix(logSuffix.span), name.hasSuffix(listSuffix.span))
        }
        if isLog, let found = log(index, in: scan, lookup, context: context) { findings.add(found) }
        if isList { lists.append(index) }
      }
      if !lists.isEmpty { check(lists, of: scan, context: context, into: &findings) }
    }
  }

  /// Returns a finding about a log if it is larger than its database.
  private static func log(
    _ index: Int, in scan: ContainerScan, _ lookup: EntryLookup, context: AuditContext
  ) -> AuditFinding? {
    let log = scan.entries[index]
    guard log.status.size > usualLog,
      let database = lookup.child(
        named: ByteString(scan.nameBytes(index).dropLast(logSuffix.count)), of: Int(log.parent)),
      scan.entries[database].status.kind == .file,
      scan.entries[database].status.size < log.status.size
    else { return nil }
    let size = ByteCount.text(scan.entries[database].status.size)
    let real = scan.container.absolutePath.appending(scan.path(database))
    return context.finding(
      .logOutgrown, index, in: scan, detail: "the database has \(size)",
      command: .other(program: "sqlite3", [real, "PRAGMA wal_checkpoint(TRUNCATE)"]))
  }

  private static func check(
    _ lists: [Int], of scan: ContainerScan, context: AuditContext,
    into findings: inout FindingCollector
  ) {
    do throws(SystemError) {
      var reader = try ContainerReader(scan.container)
      for index in lists where isXML(index, in: scan, &reader, into: &findings) {
        let real = scan.container.absolutePath.appending(scan.path(index))
        findings.add(
          context.finding(
            .xmlPropertyList, index, in: scan, detail: "",
            command: .other(program: "plistutil -f bin", ["-i", real, "-o", real])))
      }
    } catch {
      findings.addUnusable(scan.container.logicalPrefix, because: error.reason)
    }
  }

  /// Whether a property list is XML; false, with a remark, if it cannot be read.
  private static func isXML(
    _ index: Int, in scan: ContainerScan, _ reader: inout ContainerReader,
    into findings: inout FindingCollector
  ) -> Bool {
    do throws(SystemError) {
      return isXML(try reader.head(scan.path(index), count: 64))
    } catch {
      // A file that vanished since the scan needs no advice.
      if !error.isMissing { findings.addUnusable(scan.logicalPath(index), because: error.reason) }
      return false
    }
  }

  /// Whether a file begins like an XML property list, possibly after a byte order mark or white
  /// space.
  private static func isXML(_ head: [UInt8]) -> Bool {
    let text = head.drop { $0 <= 0x20 || [0xef, 0xbb, 0xbf].contains($0) }
    return ["<?xml", "<!DOCTYPE plist", "<plist"].contains { text.starts(with: $0.utf8) }
  }
}
