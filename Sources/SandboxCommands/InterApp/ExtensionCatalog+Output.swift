internal import ArchiveStore
internal import Codecs
internal import InterApp
internal import SandboxModel
internal import SystemIO

extension ExtensionCatalog {
  /// The members of a result about the extensions' declarations themselves.
  var members: [JSON.Member] {
    [
      JSON.Member("findings", .array(findings.map(\.json))),
      JSON.Member(
        "unreadable",
        .array(
          unreadable.map { remark in
            .object(JSON.path(remark.path) + [JSON.Member("note", .string(remark.remark))])
          })),
    ]
  }
}

/// The text output about irregularities of the extensions of a device.
struct ExtensionsText {
  private let catalog: ExtensionCatalog
  private let listsAll: Bool

  init(_ catalog: ExtensionCatalog, listsAll: Bool) {
    self.catalog = catalog
    self.listsAll = listsAll
  }

  /// Prints extensions that could not be read, and the findings, or a note with their number.
  func write(_ console: Console, findings isListing: Bool, isQuiet: Bool) throws {
    console.remarks(catalog.unreadable, as: .warning("not read: "), all: listsAll)
    let findings = catalog.findings
    guard isListing else {
      if !isQuiet, !findings.isEmpty {
        console.note(
          "\(Sizes.count(findings.count, "irregularity")) of the extensions: see '--findings'")
      }
      return
    }
    let excerpt = ListExcerpt(findings, all: listsAll)
    for finding in excerpt.shown {
      try console.result(
        "\(finding.severity.rawValue): \(finding.app): \(finding.key.shown): \(finding.reason)")
    }
    if let remainder = excerpt.remainder { try console.result(remainder) }
  }
}
