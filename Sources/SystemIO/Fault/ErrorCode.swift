/// The stable codes of errors, as `--json` prints them (docs/json/README.md, "Errors").
///
/// A code is never renamed and never gets another meaning; a message may change with any version.
public enum ErrorCode: String, Sendable, Hashable, CaseIterable {
  // MARK: Files and the system

  case notFound = "not_found"
  case permissionDenied = "permission_denied"
  /// A directory of this program belongs to another user or can be written to by others.
  case notTrusted = "not_trusted"
  case noSpace = "no_space"
  case quotaExceeded = "quota_exceeded"
  case readOnly = "read_only"
  case tooManyOpenFiles = "too_many_open_files"
  /// The disk reports that it cannot read or write data.
  case dataLost = "data_lost"
  /// The file or directory was replaced during the operation.
  case replacedMeanwhile = "replaced_meanwhile"
  case tooLarge = "too_large"
  /// Any other failed system call.
  case systemError = "system_error"
  /// An error of the program itself.
  case internalError = "internal_error"

  // MARK: Repositories

  case noRepository = "no_repository"
  case notEmpty = "not_empty"
  case repositoryLocked = "repository_locked"
  case leaseLost = "lease_lost"
  case unsupportedFormat = "unsupported_format"
  case unknownFeature = "unknown_feature"
  case objectMissing = "object_missing"
  case damaged
  case snapshotNotFound = "snapshot_not_found"
  case snapshotAmbiguous = "snapshot_ambiguous"
  /// The snapshot is not signed by a trusted signer.
  case snapshotUntrusted = "snapshot_untrusted"
  case snapshotPinned = "snapshot_pinned"
  /// No other snapshot of the group would be left.
  case lastSnapshot = "last_snapshot"
  case notDurable = "not_durable"
  /// The passphrase or the identity does not open the repository.
  case wrongKey = "wrong_key"
  /// The repository is encrypted, and no key was given, or none that can read it.
  case keyRequired = "key_required"

  // MARK: Devices, apps and paths

  case noDevice = "no_device"
  case ambiguousDevice = "ambiguous_device"
  case noApp = "no_app"
  case ambiguousApp = "ambiguous_app"
  case layoutMismatch = "layout_mismatch"
  case unknownLayout = "unknown_layout"
  case layoutUnsupported = "layout_unsupported"
  case deviceMismatch = "device_mismatch"
  case notADeviceSnapshot = "not_a_device_snapshot"
  case invalidPath = "invalid_path"
  case invalidContainerName = "invalid_container_name"
  case invalidPropertyList = "invalid_property_list"
  case invalidPackage = "invalid_package"
  case unsafePackage = "unsafe_package"
  /// A file or list has more entries or bytes than the program accepts.
  case limitExceeded = "limit_exceeded"

  // MARK: Policies and configuration

  case invalidPattern = "invalid_pattern"
  case invalidPolicy = "invalid_policy"
  case noPolicy = "no_policy"
  case invalidConfiguration = "invalid_configuration"

  // MARK: Backup and restore

  /// Another run backs up the same source.
  case sourceLocked = "source_locked"
  /// Another operation changes the same app.
  case appLocked = "app_locked"
  /// Another restore changes the same directory.
  case targetLocked = "target_locked"
  case interrupted
  case nothingReadable = "nothing_readable"
  case sourceIsRepository = "source_is_repository"
  case stateNotSaved = "state_not_saved"
  case stateLost = "state_lost"
  case targetInRepository = "target_in_repository"
  case targetIsWorkingDirectory = "target_is_working_directory"
  case targetExists = "target_exists"
  case invalidTarget = "invalid_target"
  case pathNotInSnapshot = "path_not_in_snapshot"
  case notInContainer = "not_in_container"
  case notAFile = "not_a_file"
  case cannotMergeLog = "cannot_merge_log"
  case safetySnapshotFailed = "safety_snapshot_failed"
  case danglingTarget = "dangling_target"
  case rootMissing = "root_missing"
  case otherVolume = "other_volume"
  /// The device changed between the plan and the operation.
  case changedSincePlan = "changed_since_plan"

  // MARK: Apps and recovery

  case appRunning = "app_running"
  case appNotInstalled = "app_not_installed"
  case appInstalled = "app_installed"
  /// The app does not open files of this type.
  case typeRefused = "type_refused"
  case wrongPackage = "wrong_package"
  case downgradeRefused = "downgrade_refused"
  case extensionMismatch = "extension_mismatch"
  case newerData = "newer_data"
  case noUpdateSnapshot = "no_update_snapshot"
  case noRepositoryForSnapshot = "no_repository_for_snapshot"
  case managedByPlatform = "managed_by_platform"
  case journalDamaged = "journal_damaged"
  case journalForeign = "journal_foreign"
  case recoveryFailed = "recovery_failed"
  case recoveryRequired = "recovery_required"
  case rollbackFailed = "rollback_failed"
  case noTrashOperation = "no_trash_operation"

  // MARK: The command line

  case invalidArguments = "invalid_arguments"
  case unknownCommand = "unknown_command"
  case invalidValue = "invalid_value"
  case optionRequired = "option_required"
  case optionRepeated = "option_repeated"
  case optionsConflict = "options_conflict"
  case deviceRequired = "device_required"
  case targetRequired = "target_required"
  case repositoryRequired = "repository_required"
  case unknownProfile = "unknown_profile"
  case terminalRequired = "terminal_required"
  case outputIsTerminal = "output_is_terminal"
  case environmentMissing = "environment_missing"
  case invalidInput = "invalid_input"
  case invalidShellText = "invalid_shell_text"
  case declined
  case programMissing = "program_missing"
  case programFailed = "program_failed"
  /// A file that the program would replace was not written by it.
  case notOurFile = "not_our_file"
  /// The directory is not a sample device.
  case notASample = "not_a_sample"
}
