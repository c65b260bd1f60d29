"""How notices leave the server, as requests and mails: implements `core.notice_port.NoticeCarrier`."""
