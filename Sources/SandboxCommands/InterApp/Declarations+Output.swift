internal import ArchiveStore
internal import Codecs
internal import InterApp
internal import SandboxModel
internal import SystemIO

/// The irregularities of the declarations of a device's apps, or of their extensions, for output.
struct DeclarationRemarks {
  let findings: [DeclarationFinding]
  /// The bundles whose Info.plist could not be read, with the reasons.
  let unreadable: [PathRemark]
  /// The declarations in words, for the note about findings: "the apps' declarations".
  let subject: String

  /// The members of a result in JSON.
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

  /// Prints bundles that could not be read, and the findings, or a note with their number.
  ///
  /// - Parameter isListing: Whether the findings are listed.
  func write(
    _ console: Console, findings isListing: Bool, listsAll: Bool, isQuiet: Bool
  ) throws {
    console.remarks(unreadable, as: .warning("not read: "), all: listsAll)
    guard isListing else {
      if !isQuiet, !findings.isEmpty {
        console.note(
          "\(Sizes.count(findings.count, "irregularity")) of \(subject): see '--findings'")
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

extension InterAppModel {
  /// The irregularities of the apps' declarations.
  var remarks: DeclarationRemarks {
    DeclarationRemarks(
      findings: findings, unreadable: catalog.unreadable, subject: "the apps' declarations")
  }
}

extension ExtensionCatalog {
  /// The irregularities of the extensions' declarations.
  var remarks: DeclarationRemarks {
    DeclarationRemarks(findings: findings, unreadable: unreadable, subject: "the extensions")
  }
}

extension DeclarationFinding {
  fileprivate var json: JSON {
    [
      "severity": .string(severity.rawValue), "app": .string(app.description),
      "key": .string(key.shown), "reason": .string(reason),
    ]
  }
}
