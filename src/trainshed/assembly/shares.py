"""How the machines are divided: by a file that the settings name, else by what was set by the API."""

from dataclasses import dataclass

from trainshed.assembly.access import Access
from trainshed.assembly.shared import SharedParts
from trainshed.assembly.storage import Storage
from trainshed.control.past_use import PastUse
from trainshed.data.catalogue import load_catalogue
from trainshed.service.account_ages import AccountAges
from trainshed.service.reserved_shares import ReservedShares
from trainshed.settings.share_file import ShareFile
from trainshed.settings.stored_shares import StoredShares


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    past_use: PastUse  # the shares with what their projects had lately
    reserved: ReservedShares  # these with the persistent resources: what the scheduler goes by
    stored: StoredShares


def make_shares(shared: SharedParts, storage: Storage, access: Access) -> Shares:
    accelerators, file = load_catalogue().accelerators, shared.settings.shares
    stored = StoredShares(shared.settings.home / "shares.json", accelerators)
    source = stored if file is None else ShareFile(file, accelerators)
    ages = AccountAges(lambda: access.accounts.directory)
    past_use = PastUse(storage.store, shared.clock, source, ages)
    return Shares(past_use=past_use, reserved=ReservedShares(past_use.tree), stored=stored)
