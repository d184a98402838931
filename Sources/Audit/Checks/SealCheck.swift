internal import Codecs
internal import DeviceScan
internal import SandboxModel
internal import SystemIO

/// Bundles whose files differ from the list in their signature, between snapshots of the same
/// version, or from the last snapshot.
enum SealCheck: AuditCheck {
  static func run(_ context: AuditContext, into findings: inout FindingCollector) {
    for scan in context.scan.containers where scan.container.kind == .bundle {
      for bundle in context.declarations(in: scan).found {
        check(bundle, in: scan, context: context, into: &findings)
      }
      for (counts, place, key) in [
        (context.history?.bundles, "between snapshots of the same version", "snapshots"),
        (context.history?.changedSince, "from the last snapshot of the same version", "device"),
      ] {
        guard let count = counts?[scan.container.logicalPrefix] else { continue }
        let entries = count == 1 ? "1 entry differs" : "\(count) entries differ"
        findings.add(
          context.finding(
            .bundleChanged, "", in: scan.container, isDirectory: true,
            detail: "\(entries) \(place)", key: key, command: .change(["update", "PACKAGE"])))
      }
    }
  }

  private static func check(
    _ bundle: BundleDeclarations, in scan: ContainerScan, context: AuditContext,
    into findings: inout FindingCollector
  ) {
    let base = bundle.path.parent
    let file = base.appending("_CodeSignature/CodeResources")
    guard let top = scan.index(of: base), let listed = scan.index(of: file) else { return }
    let list: PropertyList
    do {
      var reader = try ContainerReader(scan.container)
      list = try reader.dictionary(file)
    } catch {
      let reason = (error as? UnusableList)?.reason ?? "\(error)"
      return findings.addUnusable(
        scan.container.logicalPrefix.appending(file), because: reason)
    }
    guard let seal = BundleSeal(list) else { return }
    var found = seal.differences(in: scan, at: top, executable: executable(of: bundle))
    let content = SealedContent(seal, in: scan, at: top, list: listed)
    found.altered = content.altered
    for (path, reason) in content.remarks {
      findings.addUnusable(scan.container.logicalPrefix.appending(path), because: reason)
    }
    if found.isEmpty { return }
    var totals = EntryTotals()
    for added in found.added + found.altered { totals.add(scan.entries[added.index].status) }
    findings.add(
      context.finding(
        .bundleChanged, bundle.bundle, in: scan.container, totals: totals, isDirectory: true,
        detail: text(found), key: "signature", command: .change(["update", "PACKAGE"])))
  }

  /// Returns the path of a bundle's program, relative to its list.
  private static func executable(of bundle: BundleDeclarations) -> ByteString? {
    guard let name = bundle.list["CFBundleExecutable"]?.stringValue else { return nil }
    let isFlat = bundle.path.parent == bundle.bundle
    return isFlat ? ByteString(name) : ByteString("MacOS").appending(ByteString(name))
  }

  /// Returns the differences with an example of each kind: "2 files are missing (a.png), 1 is not
  /// in the signature (b.dylib)".
  private static func text(_ found: BundleSeal.Differences) -> String {
    var parts: [String] = []
    if let first = found.missing.first {
      parts.append("\(count(found.missing.count)) missing ('\(first)')")
    }
    if let first = found.added.first {
      parts.append("\(count(found.added.count)) not in the signature ('\(first.path)')")
    }
    if let first = found.altered.first {
      let number = found.altered.count
      let files = number == 1 ? "1 file differs" : "\(number) files differ"
      parts.append("\(files) from the signature ('\(first.path)')")
    }
    return parts.joined(separator: ", ")
  }

  private static func count(_ number: Int) -> String {
    number == 1 ? "1 file is" : "\(number) files are"
  }
}
