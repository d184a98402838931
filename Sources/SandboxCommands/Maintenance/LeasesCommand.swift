internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import SystemIO

/// `sandboxctl leases`: lists the programs that are using a repository.
struct LeasesCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "leases",
      abstract: "List the programs that are using a repository",
      usage: "sandboxctl leases [--repo <repo>] [<options>]",
      discussion: """
        Lists the leases of running backups, prunes, repairs and long restores, with host, process \
        and the time of the last heartbeat. No lock has to be removed by hand: the lease of a \
        program that ended is removed by the next prune an hour after its last heartbeat.

        \(Examples.text(["sandboxctl leases --repo repo"]))
        """)
  }

  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let leases = try repository.open().repository.leases()
    let now = Host.now()
    if output.json {
      for lease in leases { try console.result(lease.json) }
    } else if leases.isEmpty {
      if !output.quiet { console.note("no program is using the repository") }
    } else {
      var table = Table([
        ("lease", .left), ("use", .left), ("host", .left), ("process", .right),
        ("last heartbeat", .left), ("state", .left),
      ])
      for lease in leases { table.add(lease.cells(at: now)) }
      try console.result(table)
    }
    return .done
  }
}

extension LeaseStatus {
  private var use: String { removesObjects ? "prune or repair" : isReader ? "read" : "write" }

  fileprivate func cells(at now: Timestamp) -> [String] {
    [
      String(name.description.prefix(8)), use, (host ?? "-").shown,
      process.map { String($0) } ?? "-",
      heartbeat.map { "\(Times.duration(max(0, now.since($0)))) ago" } ?? "none",
      presence.word ?? "-",
    ]
  }

  /// The lease as a line of `leases --json`.
  fileprivate var json: JSON {
    [
      "lease": .string(name.description), "use": .string(use.replacing(" ", with: "_")),
      "host": host.map { .string($0) } ?? .null,
      "process": process.map { .integer(Int64($0)) } ?? .null,
      "heartbeat": heartbeat.map { .string($0.rfc3339) } ?? .null,
      "state": presence.word.map { .string($0) } ?? .null,
    ]
  }
}

extension Processes.Presence {
  /// The state of a program, or nil if this host cannot determine it.
  fileprivate var word: String? {
    switch self {
    case .running: "running"
    case .ended: "ended"
    case .unknown: nil
    }
  }
}
