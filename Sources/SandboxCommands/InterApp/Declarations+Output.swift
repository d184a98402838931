internal import ArchiveStore
internal import Codecs
internal import InterApp
internal import SandboxModel
internal import SystemIO

extension InterAppModel {
  /// The members of a result about the declarations themselves.
  var declarationMembers: [JSON.Member] {
    [
      JSON.Member("findings", .array(findings.map(\.json))),
      JSON.Member(
        "unreadable",
        .array(
          catalog.unreadable.map { remark in
            .object(JSON.path(remark.path) + [JSON.Member("note", .string(remark.remark))])
          })),
    ]
  }
}

extension DeclarationFinding {
  /// The finding as an element of a result.
  var json: JSON {
    [
      "severity": .string(severity.rawValue), "app": .string(app.description),
      "key": .string(key.shown), "reason": .string(reason),
    ]
  }
}

/// The text output about irregularities of the declarations of a device's apps.
struct DeclarationsText {
  private let model: InterAppModel
  private let listsAll: Bool

  init(_ model: InterAppModel, listsAll: Bool) {
    self.model = model
    self.listsAll = listsAll
  }

  /// Prints apps that could not be read, and the findings, or a note with their number.
  func write(_ console: Console, findings isListing: Bool, isQuiet: Bool) throws {
    console.remarks(model.catalog.unreadable, as: .warning("not read: "), all: listsAll)
    let findings = model.findings
    guard isListing else {
      if !isQuiet, !findings.isEmpty {
        console.note(
          "\(Sizes.count(findings.count, "irregularity")) of the apps' declarations: see "
            + "'--findings'")
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
