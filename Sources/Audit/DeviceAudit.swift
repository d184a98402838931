// The audit of a device: it compares the entries of one scan, the property lists of the bundles and
// the changes between the last snapshots with the rules of `AuditRule.all`.
//
// It walks the device once, by the scan, and reads property lists, the first bytes of large ones,
// files that have the name and size of one in their app's bundle, files of bundles that are newer
// than their signature, and nothing else. Each check goes through the entries once or twice. The
// number of findings is bounded (`FindingCollector`). A rule that relies on names (caches,
// documents) may be wrong; a finding changes neither a backup nor a purge.
package import DeviceScan
package import InterApp
internal import SandboxModel
package import SystemIO

/// An audit of a device.
package enum DeviceAudit {
  /// The checks, one for each topic.
  private static var checks: [any AuditCheck.Type] {
    [
      RecreatableDataCheck.self, MisplacedDataCheck.self, PlaceCheck.self, LeftoverCheck.self,
      MarkCheck.self, ChangeCheck.self, FileCheck.self, BundleCheck.self, SealCheck.self,
    ]
  }

  /// Examines a scan of a whole device.
  ///
  /// - Parameters:
  ///   - history: The changes between the last snapshots of the device; nil if there are none.
  ///   - options: The options of the commands in findings.
  ///   - baseline: The known findings, which are not reported.
  ///   - now: The time relative to which ages are computed.
  ///   - types: Returns the types of the system; called only if an app declares documents.
  /// - Throws: The error of `types`.
  package static func run(
    _ scan: DeviceScan, history: ChangeHistory? = nil,
    options: CommandOptions = CommandOptions(), excluding baseline: AuditBaseline? = nil,
    now: Timestamp = Host.now(), types: () throws -> TypeTable
  ) rethrows -> AuditReport {
    let context = try AuditContext(
      scan, now: now, history: history, options: options, types: types)
    var findings = FindingCollector(baseline: baseline)
    for check in checks { check.run(context, into: &findings) }
    return AuditReport(
      scan.device, findings, unreadable: scan.containers.flatMap(\.unreadableByLogicalPath),
      skipped: skipped(context))
  }

  /// Returns the reason why the rules about changes are not applied: snapshots of one day do not
  /// show files that change daily.
  private static func reason(fewDays history: ChangeHistory?) -> String {
    let needed = "snapshots of the device from \(ChangeCheck.minimumIntervals + 1) days are needed"
    guard let intervals = history?.intervals, intervals > 0 else { return needed }
    return "\(needed), but there are only those of \(intervals + 1)"
  }

  /// Returns the rules that were not applied.
  private static func skipped(_ context: AuditContext) -> [AuditReport.SkippedRule] {
    var skipped: [AuditReport.SkippedRule] = []
    if (context.history?.intervals ?? 0) < ChangeCheck.minimumIntervals {
      skipped += [AuditRule.churn, .flatFile].map {
        .init(rule: $0, reason: reason(fewDays: context.history))
      }
    } else if context.history?.isTruncated == true {
      skipped += [AuditRule.churn, .flatFile].map {
        .init(rule: $0, reason: "only the first \(ChangeHistory.limit) changed files were examined")
      }
    }
    if !context.isApple {
      let ofApple: [AuditRule] =
        [.userDataInCache, .unpromisedDirectory, .inboxLeftover, .temporaryLeftover]
        + AuditRule.ofBundles
      skipped += ofApple.map { .init(rule: $0, reason: "it applies only to Apple's platforms") }
    }
    return skipped
  }
}
